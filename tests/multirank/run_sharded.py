#!/usr/bin/env python3
"""Makes the configurations, then proves sharded = unsharded on local ranks, on two threads, and under one mpirun a number of ranks.

usage: run_sharded.py BIN FOLDER    BIN: where ulyc and sharded are
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = {"quick": 48, "long": 2000}.get(os.environ.get("ULY_TEST_MODE", ""), 504)
SEED = int(os.environ.get("ULY_TEST_SEED", "1"))


def run(command):
    print("+", " ".join(command), flush=True)
    if subprocess.run(command).returncode:
        sys.exit(f"failed with seed {SEED}: {' '.join(command)}")


def thin(path, every):
    """Every n-th line, in path.some. Inputs are seeded by line number, so lines in between become empty ones."""
    lines = open(path).read().splitlines()
    with open(path + ".some", "w") as f:
        f.write("\n".join(line if i % every == 0 else "-" for i, line in enumerate(lines)) + "\n")


def main():
    binaries, folder = sys.argv[1:]
    configs, hashes = f"{folder}/configs", f"{folder}/hashes"
    run([sys.executable, f"{HERE}/make_configs.py", folder, str(COUNT), str(SEED), f"{binaries}/ulyc"])
    run([f"{binaries}/sharded", "local", configs, hashes])
    run([f"{binaries}/sharded", "threads", configs, hashes])
    for ranks, every in ((1, 4), (2, 1), (3, 1), (4, 1), (5, 4), (6, 4), (7, 4), (8, 4), (16, 16)):
        thin(configs, 1 if os.environ.get("ULY_TEST_MODE") == "long" else every)
        thin(hashes, 1 if os.environ.get("ULY_TEST_MODE") == "long" else every)
        if os.path.exists(hashes + ".some.board"):
            os.remove(hashes + ".some.board")
        run(["mpirun", "-n", str(ranks), f"{binaries}/sharded", "mpi", configs + ".some", hashes + ".some"])


main()
