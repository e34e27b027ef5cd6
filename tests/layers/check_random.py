"""Random specs against the float64 reference, on one rank, and with other numbers of ranks and NaN in fresh memory to the same bits.
Usage: check_random.py BIN [SEED [SPECS]]"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import make_random

SPECS = {"quick": 3, "long": 200}.get(os.environ.get("ULY_TEST_MODE", ""), 12)
ENTRIES = 6  # a spec
SIZES = [("B=2", "S=13"), ("B=1", "S=2"), ("B=3", "S=5"), ("B=1", "S=33")]
RANKS = [1, 2, 3, 5]
BOUND = 1e-3  # of the largest value: a long chain of roundings stays below, a mistake does not


def call(*args, poison=False):
    run = subprocess.run([str(a) for a in args], capture_output=True, text=True, env=dict(os.environ, ULYRT_POISON="1" if poison else "0"))
    if run.returncode:
        raise RuntimeError(f"{' '.join(str(a) for a in args)}\nexit code {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout


def run_entry(tools, folder, line, ranks):
    words = line.split()
    name, files = words[0], folder / words[0]
    args = []
    for word in words[1:]:
        kind, file = ("--input", "inputs") if word[0] == "<" else ("--expect", "expected")
        args += [kind, f"{word[1:]}=@{files}.{file}.safetensors:{word[1:]}"]
    out = call(tools / "ulyrun", folder / "m.so", "--entry", name, "--ranks", ranks, "--threads", 1, "--weights", f"{files}.weights.safetensors", "--rtol", 1, "--atol", 1e30, *args,
               poison=ranks > 1)
    errors = [float(e) for e in re.findall(r"of the largest value (\S+)", out)]
    if len(errors) != line.count(" >") or not max(errors) <= BOUND:
        raise RuntimeError(f"error {errors} of the largest value\n{out}")
    return re.findall(r"hash ([0-9a-f]+)", out)


def check(tools, seed):
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "m.spec").write_text(make_random.make_spec(seed, ENTRIES))
        try:
            call(tools / "ulyc", "-O1", folder / "m.spec", "-o", folder / "m.so")
            lines = call(tools / "reference_case", folder / "m.spec", folder, seed, *SIZES[seed % len(SIZES)]).splitlines()
        except RuntimeError as error:
            return [f"seed {seed}: {error}"]
        for line in lines:
            try:
                hashes = [run_entry(tools, folder, line, ranks) for ranks in RANKS]
                if any(h != hashes[0] for h in hashes):
                    raise RuntimeError(f"bits differ: {hashes}")
            except RuntimeError as error:
                failures.append(f"seed {seed}, {' '.join(SIZES[seed % len(SIZES)])}, {line.split()[0]}: {error}")
    return failures


def main():
    tools = pathlib.Path(sys.argv[1]).resolve()
    first = int(sys.argv[2]) if len(sys.argv) > 2 else int(os.environ.get("ULY_TEST_SEED", "1"))
    seeds = range(first, first + (int(sys.argv[3]) if len(sys.argv) > 3 else SPECS))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failures = [f for each in pool.map(lambda seed: check(tools, seed), seeds) for f in each]
    print("\n".join(failures))
    print(f"{len(seeds) * ENTRIES - len(failures)} of {len(seeds) * ENTRIES} as the reference")
    return bool(failures)


sys.exit(main())
