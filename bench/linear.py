#!/usr/bin/env python3
"""Linear layers, ours beside PyTorch's: bench/linear.py BUILD_DIR [--python PYTHON_WITH_TORCH] [--rounds 6] [--threads 1 2]

Ours and theirs take turns; of each the best call counts. Without --python (for instance a venv with `pip install torch`) only ours is timed. The share is of
an FMA loop's rate on as many threads, timed between our calls."""
import argparse
import pathlib
import subprocess
import time

SHAPES = [(512, 384, 1536), (512, 1536, 384), (2048, 1024, 1024), (2048, 2816, 1024), (2048, 2048, 2048), (8192, 384, 1024), (37, 576, 1536), (8, 4096, 4096)]
SLICE_MS = 80


def ours(bench, threads, m, k, n, *options):
    out = subprocess.run([bench, f"threads={threads}", f"ms={SLICE_MS}", *options, f"{m},{k},{n}"], check=True, capture_output=True, text=True).stdout.split()
    return float(out[3]), float(out[4])


def theirs(peer, threads, m, k, n):
    peer.stdin.write(f"{threads} {m} {k} {n} {SLICE_MS}\n")
    peer.stdin.flush()
    answer = float(peer.stdout.readline())
    time.sleep(0.05)  # its threads spin a while after a call
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--python")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kinds", nargs="+", default=["plain"], help="plain residual silu rope")
    args = parser.parse_args()
    bench = str(pathlib.Path(args.build) / "bin" / "linear_bench")
    peer = None
    if args.python:
        script = pathlib.Path(__file__).with_name("torch_linear.py")
        peer = subprocess.Popen([args.python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(f"{'threads':>7} {'M, K, N':>18} {'kind':>9} {'GFLOP/s':>8} {'of peak':>8} {'PyTorch':>8} {'ratio':>6}")
    for threads in args.threads:
        for shape in SHAPES:
            for kind in args.kinds:
                best, rate, peak = 0.0, 0.0, 0.0
                for _ in range(args.rounds):
                    r, share = ours(bench, threads, *shape, f"kind={kind}")
                    rate, peak = max(rate, r), max(peak, r / share)
                    if peer:
                        best = max(best, theirs(peer, threads, *shape))
                beside = f"{best:8.1f} {rate / best:6.2f}" if peer else f"{'-':>8} {'-':>6}"
                print(f"{threads:7} {', '.join(map(str, shape)):>18} {kind:>9} {rate:8.1f} {100 * rate / peak:7.1f}% {beside}", flush=True)


if __name__ == "__main__":
    main()
