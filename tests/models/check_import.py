#!/usr/bin/env python3
"""`ulyc import` of each config.json below this folder: the spec that is expected of it, with the parameters of the published weights, and, run with these, the published outputs.

usage: check_import.py BIN [--write]    BIN: where ulyc and ulyrun are; --write: take what is printed for what is expected
"""
import json
import math
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
UNKNOWN = ["t5"]  # families whose specs are written by hand
RTOL = 1e-5  # of the largest output


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def header(path):
    with open(path, "rb") as f:
        text = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    return {name: tensor["shape"] for name, tensor in text.items() if name != "__metadata__"}


def parameters(binaries, spec):
    done = run(f"{binaries}/ulyc", "check", spec)
    return {name: [int(n) for n in dims.split(",") if n] for name, dims in re.findall(r"^    (\S+) \w+\[([\d, ]*)\]$", done.stdout, re.M)}


def check_outputs(binaries, spec, folder, scratch):
    """Runs a spec whose results are among the expected ones; a result of the same hash on every number of ranks."""
    model = f"{scratch}/model.so"
    done = run(f"{binaries}/ulyc", spec, "-o", model, "--march=x86-64-v3")
    if done.returncode:
        yield done.stderr
        return
    results = re.findall(r"^  result  (\S+)", run(f"{binaries}/ulyc", "check", spec).stdout, re.M)
    options = [f"--input={name}=@{folder}/inputs.safetensors" for name in header(folder / "inputs.safetensors")]
    options += [f"--expect={name}=@{folder}/expected.safetensors" for name in results]
    hashes = set()
    for ranks in "1", "3":
        done = run(f"{binaries}/ulyrun", model, "--weights", str(folder / "weights.safetensors"), *options, "--ranks", ranks, "--rtol", "0", "--atol", "1")
        errors = [float(x) for x in re.findall(r"of the largest value ([0-9.e+-]+)", done.stdout)]
        if done.returncode or len(errors) != len(results) or max(errors) > RTOL:
            yield f"{ranks} ranks: {done.stdout}{done.stderr}"
        hashes.add(tuple(re.findall(r"hash (\w+)", done.stdout)))
    if len(hashes) != 1:
        yield f"other bits on other numbers of ranks: {hashes}"


def check(binaries, folder, scratch, write):
    expected = folder / "imported.spec"
    done = run(f"{binaries}/ulyc", "import", str(folder / "config.json"))
    if folder.name in UNKNOWN:
        if done.returncode != 1 or "known are" not in done.stderr:
            yield f"exit code {done.returncode}\n{done.stderr}"
        return
    if done.returncode:
        yield done.stderr
        return
    if write:
        expected.write_text(done.stdout)
    if not expected.exists() or done.stdout != expected.read_text():
        yield "it is imported as\n" + done.stdout
        return
    if not (folder / "weights.safetensors").exists():
        return
    have, want = parameters(binaries, str(expected)), header(folder / "weights.safetensors")
    if have != want:
        yield f"parameters: only the spec has {sorted(have.keys() - want.keys())}, only the weights {sorted(want.keys() - have.keys())}, " + ", ".join(
            f"{n} is {have[n]}, not {want[n]}" for n in have.keys() & want.keys() if have[n] != want[n])
    yield from check_outputs(binaries, str(expected), folder, scratch)


def check_names(binaries, scratch):
    """--weights: names as the file has them, without the first word or with those of old norms."""
    for case, rename in ("gpt2", lambda n: n.removeprefix("transformer.")), ("bert", lambda n: re.sub(r"(LayerNorm)\.weight", r"\1.gamma", re.sub(r"(LayerNorm)\.bias", r"\1.beta", n))):
        names = {rename(n): shape for n, shape in header(HERE / case / "weights.safetensors").items()}
        text, at = {}, 0
        for name, shape in names.items():
            size = 4 * math.prod(shape)
            text[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        path, spec = f"{scratch}/{case}.safetensors", f"{scratch}/{case}.spec"
        raw = json.dumps(text).encode()
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(raw)) + raw)
            f.truncate(8 + len(raw) + at)
        done = run(f"{binaries}/ulyc", "import", str(HERE / case / "config.json"), "--weights", path, "-o", spec)
        if done.returncode or "parameters are not in" in done.stderr or parameters(binaries, spec) != names:
            yield f"{case}: {done.stderr}{sorted(parameters(binaries, spec))[:3]}"
    done = run(f"{binaries}/ulyc", "import", str(HERE / "bert" / "config.json"), "--weights", path.replace("bert", "gpt2"))
    if not re.search(r"note: 55 of 55 parameters are not in \S*gpt2.safetensors, first embeddings", done.stderr):
        yield f"names of another model: {done.stderr}"


def check_variants(binaries, scratch):
    """Every architecture, and every family with any of its flags, ropes, windows and activations: a spec that the frontend takes, or a refusal, but never a broken one."""
    generator = random.Random(3)
    tables = ROOT / "driver/import"
    families = dict(re.findall(r'^FAMILY\((\w+), *"(\w+)"', (tables / "families.def").read_text(), re.M))
    architectures = re.findall(r'^ARCHITECTURE\((\w+), *"(\w+)"', (tables / "families.def").read_text(), re.M)
    flags = re.findall(r'"(\w+)[^"]*", FLAG', (tables / "keys.def").read_text())
    acts = re.findall(r'^ACTIVATION\("(\w+)"', (tables / "activations.def").read_text(), re.M)
    sizes = {"hidden_size": 64, "n_embd": 64, "num_attention_heads": 4, "n_head": 4, "num_hidden_layers": 5, "n_layer": 5, "vocab_size": 9, "head_dim": 16, "num_key_value_heads": 2}
    ropes = [None, {"type": "default"}, {"rope_type": "linear", "factor": 3}, {"type": "llama3", "factor": 2, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 64}]
    made = refused = 0
    for family, architecture in architectures * 8:
        config = {"model_type": families[family], "architectures": [architecture], "rope_scaling": generator.choice(ropes)}
        config.update({k: v for k, v in sizes.items() if k.startswith("n_e") or k in ("n_head", "n_layer") or families[family] not in ("gpt2", "bloom") or k in ("hidden_size", "vocab_size")})
        config.update({flag: generator.random() < 0.5 for flag in flags if generator.random() < 0.5})
        config[generator.choice(["hidden_act", "hidden_activation", "activation", "activation_function"])] = generator.choice(acts)
        if generator.random() < 0.5:
            config["layer_types"] = [generator.choice(["full_attention", "sliding_attention"]) for _ in range(5)]
        path = f"{scratch}/variant.json"
        with open(path, "w") as f:
            json.dump(config, f)
        done = run(f"{binaries}/ulyc", "import", path)
        made, refused = made + (done.returncode == 0), refused + (done.returncode == 1)
        if done.returncode not in (0, 1) or "<the spec>" in done.stderr or done.returncode == 1 and "cannot be expressed" not in done.stderr and "known are" not in done.stderr:
            yield f"{json.dumps(config)}\n{done.stderr}"
    if made < 50 or refused < 5:
        yield f"{made} variants made, {refused} refused"


def main():
    binaries, write = sys.argv[1], "--write" in sys.argv
    problems = ran = 0
    with tempfile.TemporaryDirectory() as scratch:
        for config in sorted(HERE.glob("*/config.json")):
            ran += 1
            for problem in check(binaries, config.parent, scratch, write):
                problems += 1
                print(f"{config.parent.name}: {problem}")
        for problem in [*check_names(binaries, scratch), *check_variants(binaries, scratch)]:
            problems += 1
            print(problem)
    print(f"{ran} configurations, {problems} problems")
    return 1 if problems or ran < 10 else 0


sys.exit(main())
