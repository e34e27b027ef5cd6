#!/usr/bin/env python3
"""Times ulyc: best of many runs and largest resident memory, beside the targets.

usage: bench/compile_bench.py [BUILD=build] [RUNS=10]

A line a command: seconds, target, seconds / target, MiB. The last lines compile the same Llama with fewer and more layers, which must cost the same.
"""
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MINILM, LLAMA = f"{ROOT}/specs/minilm.spec", f"{ROOT}/bench/llama_8b.spec"
OUT = "{out}"
# name, arguments, most seconds, most MiB
CASES = [
    ("compile MiniLM", [MINILM, "-o", OUT], 1.0, None),
    ("compile Llama 8B", [LLAMA, "-o", OUT], 2.0, 1024),
    ("check MiniLM", ["check", MINILM], 0.050, None),
    ("check Llama 8B", ["check", LLAMA], 0.050, None),
    ("compile Llama, L = 2", [LLAMA, "-D", "L=2", "-o", OUT], 2.0, 1024),
    ("compile Llama, L = 128", [LLAMA, "-D", "L=128", "-o", OUT], 2.0, 1024),
]


def run(command):
    """Seconds and MiB of one run."""
    null = os.open(os.devnull, os.O_WRONLY)
    begin = time.monotonic()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    _, status, usage = os.wait4(child, 0)
    seconds = time.monotonic() - begin
    os.close(null)
    if status:
        sys.exit("failed: " + " ".join(command))
    return seconds, usage.ru_maxrss / 1024


def measure(build, runs):
    """Name, best seconds, target, largest MiB, most MiB, of each case."""
    best = {name: (1e9, 0.0) for name, *_ in CASES}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            for name, arguments, *_ in CASES:
                seconds, mib = run([f"{build}/bin/ulyc"] + [a.replace(OUT, f"{folder}/model.so") for a in arguments])
                best[name] = (min(best[name][0], seconds), max(best[name][1], mib))
    return [(name, best[name][0], target, best[name][1], most) for name, _, target, most in CASES]


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    print(f"{'':24} {'seconds':>8} {'target':>7} {'ratio':>6} {'MiB':>6}")
    for name, seconds, target, mib, most in measure(build, runs):
        missed = seconds > target or (most and mib > most)
        print(f"{name:24} {seconds:8.3f} {target:7.3f} {seconds / target:6.2f} {mib:6.0f}{'  MISSED' if missed else ''}")


if __name__ == "__main__":
    main()
