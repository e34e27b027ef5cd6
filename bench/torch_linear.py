"""PyTorch's linear, for bench/linear.py: reads "threads M K N ms" lines, answers each with the best whole call's GFLOP/s."""
import sys
import time

import torch

torch.set_flush_denormal(True)
for line in sys.stdin:
    threads, m, k, n, ms = map(int, line.split())
    torch.set_num_threads(threads)
    x, w = torch.rand(m, k) - 0.5, torch.rand(n, k) - 0.5
    best = float("inf")
    with torch.inference_mode():
        torch.nn.functional.linear(x, w)
        end = time.perf_counter() + ms * 1e-3
        while time.perf_counter() < end:
            t = time.perf_counter()
            torch.nn.functional.linear(x, w)
            best = min(best, time.perf_counter() - t)
    print(f"{2e-9 * m * k * n / best:.1f}", flush=True)
