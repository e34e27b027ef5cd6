#!/usr/bin/env python3
"""Random entries against the float64 reference: what sharded.c proves equal for every number of ranks is also right. Memory holds NaN until it is written. In bf16 and f16 the error
may be twice that of a run that rounds every value, and two roundings of the largest one.

usage: check_reference.py BIN FOLDER    BIN: where ulyc, ulyrun and reference_case are
"""
import concurrent.futures
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = {"quick": 24, "long": 1000}.get(os.environ.get("ULY_TEST_MODE", ""), 120)
SEED = int(os.environ.get("ULY_TEST_SEED", "2"))
BOUND = 1e-5  # of an output's largest value, in f32
ROUNDING = {"bf16": 3.9e-3, "f16": 4.9e-4}  # as in runtime/base/dtype.def


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, ULYRT_POISON="1"))
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(binaries, number, line):
    """The largest error of an output, relative to what it may be, or what went wrong."""
    model, entry, *sizes = line.split()
    folder, spec = os.path.dirname(model), model[:-3] + ".spec"
    files, text, bounds = f"{folder}/{entry}", open(spec).read(), {}
    rounding = ROUNDING.get(re.search(r"^dtype (\w+)$", text, re.M)[1])
    try:
        words = call(f"{binaries}/reference_case", spec, folder, str(SEED + number), entry, *sizes, *(["--naive"] if rounding else [])).split()[1:]
        grid = ["--ranks", "4", "--grid", "dp=2"] if "dp(" in text else ["--ranks", str(number % 3 + 1)]
        args = [*grid, "--threads", "1", "--weights", f"{files}.weights.safetensors", "--rtol", "0", "--atol", "1e30"]
        for word in words:
            name, *naive = word[1:].split(":")
            kind, file = ("--input", "inputs") if word[0] == "<" else ("--expect", "expected")
            args += [kind, f"{name}=@{files}.{file}.safetensors:{name}"]
            if word[0] == ">":
                bounds[name] = 2 * float(naive[0]) / float(naive[1]) + 2 * rounding if rounding else BOUND
        out = call(f"{binaries}/ulyrun", model, "--entry", entry, *args)
        errors = {name: float(e) / bounds[name] for name, e in re.findall(r"^(\w+) as expected: .* of the largest value (\S+)$", out, re.M)}
        if len(errors) != len(bounds):
            raise RuntimeError(out)
        return max(errors.values())
    except RuntimeError as error:
        return f"{line} (seed {SEED}): {error}"


def main():
    binaries, folder = sys.argv[1:]
    call(sys.executable, f"{HERE}/make_configs.py", folder, str(COUNT), str(SEED), f"{binaries}/ulyc")
    lines = open(f"{folder}/configs").read().splitlines()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda item: check(binaries, *item), enumerate(lines)))
    failed = [r for r in results if isinstance(r, str)]
    failed += [f"{line} (seed {SEED}): error {r:.3g} times what it may be" for line, r in zip(lines, results) if not isinstance(r, str) and not r <= 1]
    print("\n".join(failed))
    print(f"{len(lines) - len(failed)} passed, {len(failed)} failed, largest error {max([r for r in results if not isinstance(r, str)], default=0):.3g} times what it may be")
    sys.exit(bool(failed) or not lines)


main()
