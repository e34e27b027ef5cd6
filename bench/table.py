#!/usr/bin/env python3
"""All benchmarks with short runs, as one table of ratios: bench/table.py [BUILD=build] [--ms 400] [--python PYTHON_WITH_TORCH]

A line a measurement: what ours reaches, its share of what it is measured against, and the share that it has to reach. Compilation: the share of the time allowed.
Shares of a peak and of memcpy are of loops that take turns with ours; still, what else uses the cores disturbs them: raise --ms where shares come out low."""
import argparse
import os
import pathlib
import re
import subprocess
import tempfile

import compile_bench

FOLDER = pathlib.Path(__file__).parent
LINEAR = ["512,384,1536", "512,1536,384", "2048,1024,1024", "2048,2816,1024"]
LOSS = ["512,384,8192", "512,768,50257"]
failed = 0


def s(n):
    return "" if n == 1 else "s"


def show(what, value, share, against, target, below=False):
    """|below|: the share is of a limit."""
    global failed
    good = share <= target if below else share >= target
    failed += not good
    wanted = f"{'at most' if below else 'at least'} {100 * target:3.0f}%" if target else ""
    print(f"{what:58} {value:>13} {100 * share:6.1f}% of {against:9} {wanted}{'' if good else '   MISSED'}", flush=True)


def output(build, name, *options):
    return subprocess.run([f"{build}/bin/{name}", *options], check=True, capture_output=True, text=True, timeout=300).stdout


def has(feature):
    return feature in pathlib.Path("/proc/cpuinfo").read_text().split()


def attention(build, ms, threads):
    levels = [("v4", "", ("full", 0.88), ("causal", 0.84))] if has("avx512f") else []
    for level, kinds, *targets in levels + [("v3", "64", ("full", 0.80), ("causal", 0.76))]:
        text = output(build, "attention_bench", f"threads={threads}", f"level={level}", f"ms={ms}")
        for width, mask, rate, share in re.findall(r"Dh=(\d+) +(\w+) +([\d.]+) GFLOP/s +([\d.]+) %", text):
            if not kinds or width == kinds:
                name = "AVX-512" if level == "v4" else "AVX2"
                show(f"attention, {mask}, Dh {width}, S 4096, {name}, {threads} thread{s(threads)}", f"{rate} GFLOP/s", float(share) / 100, "FMA peak", dict(targets)[mask])


def linear(build, ms, threads):
    for line in output(build, "linear_bench", f"threads={threads}", f"ms={ms}", *LINEAR).splitlines():
        m, k, n, rate, share = line.split()
        show(f"linear {m} x {k} x {n}, {threads} thread{s(threads)}", f"{rate} GFLOP/s", float(share), "FMA peak", 0.90)


def halves(build, ms, threads):
    """The same work in bf16 and in f32, which take turns."""
    for width, mask, rate, share in re.findall(r"Dh=(\d+) +(\w+) +bf16 +([\d.]+) GFLOP/s .* ([\d.]+) of f32", output(build, "attention_bench", f"threads={threads}", f"ms={ms}", "dtype=bf16")):
        show(f"attention, {mask}, Dh {width}, bf16, {threads} thread{s(threads)}", f"{rate} GFLOP/s", float(share), "f32", 0.95)
    for line in output(build, "linear_bench", f"threads={threads}", f"ms={ms}", "dtype=bf16", *LINEAR).splitlines():
        m, k, n, rate, _, share, *_ = line.split()
        show(f"linear {m} x {k} x {n}, bf16, {threads} thread{s(threads)}", f"{rate} GFLOP/s", float(share), "f32", 0.95)


    with tempfile.TemporaryDirectory() as folder:
        best = dict.fromkeys(("f32", "bf16"), float("inf"))
        for dtype in best:
            pathlib.Path(f"{folder}/{dtype}.spec").write_text((FOLDER.parent / "specs/minilm.spec").read_text().replace("dtype f32", f"dtype {dtype}"))
            subprocess.run([f"{build}/bin/ulyc", f"{folder}/{dtype}.spec", "-o", f"{folder}/{dtype}.so"], check=True)
        for dtype in 4 * list(best):
            options = ["--weights", "rand:seed=1", "--at", "B=1,S=512", "--input", "tokens=rand:seed=3", "--threads", str(threads), "--repeat", "10", "--stats"]
            best[dtype] = min(best[dtype], float(re.search(r" run ([\d.]+) s", output(build, "ulyrun", f"{folder}/{dtype}.so", *options))[1]))
        show(f"MiniLM whole, S 512, bf16, {threads} thread{s(threads)}", f"{1e3 * best['bf16']:.1f} ms", best["f32"] / best["bf16"], "f32", 0.95)


def loss(build, ms, threads):
    """A linear whose logits go into a loss, and the same linear that writes them."""
    for line in output(build, "linear_bench", f"threads={threads}", f"ms={ms}", "kind=loss", *LOSS).splitlines():
        m, k, n, rate, _, share, *_ = line.split()
        show(f"linear {m} x {k} x {n} with loss, {threads} thread{s(threads)}", f"{rate} GFLOP/s", float(share), "without", 0.90)


def exchange(build, ms):
    for transport in ("local", "shm"):
        for ranks in (2, 4):
            text = output(build, "all_to_all_bench", f"transport={transport}", f"ranks={ranks}", f"ms={2 * ms}")
            for way, rate, share in re.findall(r"each, (.*?) +([\d.]+) GB/s +([\d.]+) %", text):
                show(f"exchange of 64 MiB a rank, {way}, {transport}, {ranks} ranks", f"{rate} GB/s", float(share) / 100, "memcpy", 0.80)


def model(build, ms):
    for size, target in ((8, 0.0), (512, 0.75)):
        for rate, share in re.findall(r"([\d.]+) GFLOP/s +([\d.]+) %", output(build, "model_bench", f"s={size}", f"ms={2 * ms}")):
            show(f"MiniLM whole, S {size}, 1 thread", f"{rate} GFLOP/s", float(share) / 100, "FMA peak", target)


def ranks(build, ms):
    """2 ranks of one thread against 1 rank of 2, the same work: the best of some turns each."""
    with tempfile.TemporaryDirectory() as folder:
        llama = f"{folder}/llama_layer.so"
        subprocess.run([f"{build}/bin/ulyc", FOLDER / "llama_layer.spec", "-o", llama], check=True)
        for name, options in (("a layer of Llama, S 2048", [f"model={llama}", "s=2048"]), ("MiniLM, S 512", ["s=512"])):
            ways = {"1 rank": ["threads=2"], "local": ["ranks=2"], "shm": ["ranks=2", "transport=shm"]}
            best = dict.fromkeys(ways, float("inf"))
            for _ in range(4):
                for way, more in ways.items():
                    text = output(build, "model_bench", *options, *more, f"ms={ms}")
                    best[way] = min(best[way], float(re.search(r"([\d.]+) ms", text)[1]))
            for way in "local", "shm":
                show(f"{name}, 2 ranks of one thread, {way}", f"{best[way]:.1f} ms", best["1 rank"] / best[way], "1 rank of 2", 0.93)


def memory(build):
    """Peak memory of ulyrun, against what has to be there."""
    cases = [("MiniLM", "specs/minilm.spec", [(8, 1), (512, 1), (512, 2)]), ("a layer of Llama", "bench/llama_layer.spec", [(2048, 1), (16384, 1), (16384, 2)]),
             ("GPT-2", "specs/gpt2.spec", [(64, 1), (1024, 1), (1024, 2)])]
    with tempfile.TemporaryDirectory() as folder:
        for name, spec, sizes in cases:
            model = f"{folder}/model.so"
            subprocess.run([f"{build}/bin/ulyc", FOLDER.parent / spec, "-o", model], check=True)
            for length, n in sizes:
                text = output(build, "memory_bench", f"model={model}", f"s={length}", f"ranks={n}", f"folder={build}")
                peak, need = re.search(r"peak ([\d.]+) MiB, needed ([\d.]+)", text).groups()
                show(f"memory of {name}, S {length}, {n} rank{s(n)}", f"{peak} MiB", float(peak) / float(need), f"{need} MiB", 1.1, below=True)


def loading(build, threads):
    """Time to the first result of a Llama with 8 billion bf16 parameters: load and bind whole, packing with two layers."""
    with tempfile.TemporaryDirectory() as folder:
        spec, model = pathlib.Path(folder) / "llama.spec", f"{folder}/model.so"
        spec.write_text((FOLDER / "llama_8b.spec").read_text().replace("\ndtype f32", "\ndtype bf16"))
        subprocess.run([f"{build}/bin/ulyc", spec, "-o", model], check=True)
        text = output(build, "load_bench", f"model={model}", "pack=0", f"folder={build}")
        seconds = re.search(r"load and bind ([\d.]+) s", text)[1]
        show("load and bind of a Llama 8B, without packing", f"{seconds} s", float(seconds) / 0.2, "0.2 s", 1, below=True)
        for dtype in "f32", "bf16":
            spec.write_text((FOLDER / "llama_8b.spec").read_text().replace("\ndtype f32", f"\ndtype {dtype}"))
            subprocess.run([f"{build}/bin/ulyc", spec, "-D", "L=2", "-D", "V=32000", "-o", model], check=True)
            text = output(build, "load_bench", f"model={model}", f"threads={threads}", f"folder={build}")
            rate, ratio = re.search(r" at ([\d.]+) GB/s, .* ratio ([\d.]+)", text).groups()
            show(f"packing of two of its layers, {dtype}, {threads} thread{s(threads)}", f"{rate} GB/s", float(ratio), "a copy", 0)


def compiling(build):
    for name, seconds, target, mib, most in compile_bench.measure(build, 5):
        show(name, f"{seconds:.3f} s", seconds / target, f"{target:g} s", 1, below=True)
        if most:
            show(name + ", memory", f"{mib:.0f} MiB", mib / most, f"{most} MiB", 1, below=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--ms", type=int, default=400)
    parser.add_argument("--python", help="one that has torch and transformers: peers.py runs too")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"other programs use the cores (load {load:.1f}): shares come out low")
    counts = [1, 2] if len(os.sched_getaffinity(0)) > 1 else [1]
    for threads in counts:
        attention(args.build, args.ms, threads)
    for threads in counts:
        linear(args.build, args.ms, threads)
    halves(args.build, args.ms, counts[-1])
    loss(args.build, args.ms, counts[-1])
    exchange(args.build, args.ms)
    model(args.build, args.ms)
    if len(counts) > 1:
        ranks(args.build, args.ms)
    memory(args.build)
    loading(args.build, counts[-1])
    compiling(args.build)
    if args.python:
        subprocess.run([FOLDER / "peers.py", args.build, "--python", args.python, "--ms", str(args.ms), "--pictures"], check=True)
    print(f"{failed} of these missed" if failed else "all reached")


if __name__ == "__main__":
    main()
