#!/usr/bin/env python3
"""What users would pick instead, beside ours: bench/peers.py BUILD_DIR --python PYTHON [--rounds 6] [--ms 400] [--pictures] [TABLE…]

PYTHON is one that has torch, transformers and deepspeed (for instance of a virtual environment: `pip install torch transformers deepspeed numpy`). Ours and theirs take turns; of
each the best whole call counts. A line a row: ours, theirs, ours / theirs as rates, and what that has to reach. --pictures writes bench/TABLE.svg.
Tables: attention, bf16, linear, models, ranks; without a name all."""
import argparse
import pathlib
import re
import subprocess
import tempfile
import time

import picture

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINEAR = [(512, 384, 1536), (512, 1536, 384), (2048, 1024, 1024), (2048, 2816, 1024), (2048, 2048, 2048), (8192, 384, 1024), (37, 576, 1536), (8, 4096, 4096)]
# Spec, -D values, input and its source, S, what to reach.
MODELS = [("minilm", "specs/minilm.spec", [], "tokens", 512, 1.2), ("llama_layer", "bench/llama_layer.spec", [], "x", 2048, 1.2), ("gpt2", "specs/gpt2.spec", [], "tokens", 1024, 1.2)]
S, HEADS = 4096, 2


class Peer:
    def __init__(self, python):
        self.process = subprocess.Popen([python, str(ROOT / "bench/torch_peer.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def seconds(self, case, threads, ms, *arguments):
        self.process.stdin.write(f"{case} {threads} {ms} {' '.join(map(str, arguments))}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"peers.py: PyTorch failed at {case} {arguments}")
        time.sleep(0.05)  # its threads spin a while after a call
        return float(answer)


def output(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def attention_rate(build, threads, ms, width, causal, dtype):
    options = [f"dtype={dtype}"] if dtype != "f32" else []
    text = output(build / "bin/attention_bench", f"threads={threads}", f"s={S}", f"heads={HEADS}", f"ms={ms}", f"kind={width}_{int(causal)}", *options)
    return float(re.search(r"([\d.]+) GFLOP/s", text)[1])


def attention_rows(args, dtype, targets):
    for (width, causal), target in targets.items():
        mask = "causal" if causal else "full"
        work = 4e-9 * HEADS * width * (S * (S + 1) / 2 if causal else S * S)
        ours = theirs = 0.0
        for _ in range(args.rounds):
            ours = max(ours, attention_rate(args.build, args.threads, args.ms, width, causal, dtype))
            theirs = max(theirs, work / args.peer.seconds("attention", args.threads, args.ms, S, width, HEADS, mask, dtype))
        yield f"attention {mask}, Dh {width}, {dtype}", ours, theirs, "GFLOP/s", target


def attention(args):
    return attention_rows(args, "f32", {(64, 0): 1.2, (64, 1): 1.35, (128, 0): 1.15, (128, 1): 1.25})


def bf16(args):
    return attention_rows(args, "bf16", {(64, 0): 1.2, (64, 1): 1.2, (128, 0): 1.2, (128, 1): 1.2})


def linear(args):
    for m, k, n in LINEAR:
        ours = theirs = 0.0
        for _ in range(args.rounds):
            text = output(args.build / "bin/linear_bench", f"threads={args.threads}", f"ms={args.ms}", f"{m},{k},{n}")
            ours = max(ours, float(text.split()[3]))
            theirs = max(theirs, 2e-9 * m * k * n / args.peer.seconds("linear", args.threads, args.ms, m, k, n, "f32"))
        yield f"linear {m} x {k} x {n}", ours, theirs, "GFLOP/s", 1.05 if m >= 512 else None


def model_seconds(args, so, source, s):
    text = output(args.build / "bin/ulyrun", so, "--weights", "rand:seed=1", "--at", f"B=1,S={s}", "--input", f"{source}=rand:seed=3", "--threads", args.threads, "--repeat", 8, "--stats")
    return float(re.search(r" run ([\d.]+) s", text)[1])


def models(args):
    for name, spec, defines, source, s, target in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            so = pathlib.Path(folder) / "model.so"
            output(args.build / "bin/ulyc", ROOT / spec, "-o", so, *defines)
            ours, theirs = 0.0, {"eager": 0.0, "compile": 0.0}
            for _ in range(args.rounds):
                ours = max(ours, 1 / model_seconds(args, so, source, s))
                for mode in theirs:
                    theirs[mode] = max(theirs[mode], 1 / args.peer.seconds("model", args.threads, args.ms, name, s, mode))
        best = max(theirs, key=theirs.get)
        yield f"{name}, S {s} (theirs: {best})", ours, theirs[best], "runs/s", target


def ranks(args):
    """Two processes of one thread that share a sequence."""
    heads, width = 8, 64
    with tempfile.TemporaryDirectory() as folder:
        so = pathlib.Path(folder) / "attention.so"
        output(args.build / "bin/ulyc", ROOT / "specs/attention.spec", "-o", so, "-D", f"H={heads}", "-D", f"K={heads}", "-D", f"Dh={width}")
        for s in 2048, 8192:
            ours = theirs = 0.0
            work = 4e-9 * heads * width * s * (s + 1) / 2
            for _ in range(args.rounds):
                text = output(args.build / "bin/model_bench", f"model={so}", f"s={s}", "ranks=2", "transport=shm", f"ms={args.ms}")
                ours = max(ours, work / (float(re.search(r"([\d.]+) ms", text)[1]) * 1e-3))
                text = output(args.python, ROOT / "bench/deepspeed_peer.py", s, heads, width, args.ms)
                theirs = max(theirs, work / float(re.search(r"seconds ([\d.e-]+)", text)[1]))
            yield f"causal attention of 2 ranks, S {s}", ours, theirs, "GFLOP/s", 1.4


TABLES = {"attention": ("Attention forward, f32", "PyTorch", attention), "bf16": ("Attention forward, bf16", "PyTorch", bf16), "linear": ("Linear layers, f32", "PyTorch", linear),
          "models": ("Whole models, f32", "PyTorch", models), "ranks": ("Attention of two processes of one thread, f32", "DeepSpeed", ranks)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--ms", type=int, default=400)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pictures", action="store_true")
    args = parser.parse_intermixed_args()
    unknown = set(args.tables) - set(TABLES)
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are: {' '.join(TABLES)}")
    if not (args.build / "bin/attention_bench").exists():
        parser.error(f"no benchmarks in {args.build}: ninja -C {args.build} benches")
    args.peer = Peer(args.python)
    for table in args.tables or TABLES:
        title, peer, make = TABLES[table]
        rows = []
        for name, ours, theirs, unit, target in make(args):
            ratio = ours / theirs
            wanted = f"at least {target:.2f}" if target else ""
            missed = "   MISSED" if target and ratio < target else ""
            print(f"{name:42} {ours:8.1f} {theirs:8.1f} {unit:8} {ratio:5.2f} {wanted}{missed}", flush=True)
            rows.append((name, ratio, target, f"{ratio:.2f}x ({ours:.1f} : {theirs:.1f} {unit})"))
        if args.pictures:
            draw = ROOT / "bench" / f"{table}.svg"
            picture.draw(draw, title, f"ours : {peer}, as rates, best of many turns; dashed: as fast, tick: the target", rows)


if __name__ == "__main__":
    main()
