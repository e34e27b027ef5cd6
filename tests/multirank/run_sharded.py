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


def main():
    binaries, folder = sys.argv[1:]
    configs, hashes = f"{folder}/configs", f"{folder}/hashes"
    run([sys.executable, f"{HERE}/make_configs.py", folder, str(COUNT), str(SEED), f"{binaries}/ulyc"])
    run([f"{binaries}/sharded", "local", configs, hashes])
    run([f"{binaries}/sharded", "threads", configs, hashes])
    for ranks in (1, 2, 3, 4, 5, 6, 7, 8, 16):
        if os.path.exists(hashes + ".board"):
            os.remove(hashes + ".board")
        run(["mpirun", "-n", str(ranks), f"{binaries}/sharded", "mpi", configs, hashes])


main()
