#!/usr/bin/env python3
"""Seeded specs for the sharded = unsharded proof.   make_configs.py FOLDER COUNT SEED ULYC

Writes specs of several entries each (attention alone, transformer blocks, encoders), compiles them into FOLDER, and lists in FOLDER/configs one line an entry:
model.so, entry, sizes. Sizes are drawn so that empty shares, S < P, H < P, K < P and K % P != 0 occur for P up to 16. Every third spec splits the batch over a second axis, which
is the first one in half of them; two of five are of bf16 or f16.
"""
import concurrent.futures
import os
import random
import subprocess
import sys

ENTRIES = 8  # a spec
DTYPES = ["f32", "bf16", "f32", "f16", "f32"]  # of specs, in turn


class Config:
    """One entry: its declarations, and the sizes it is run at."""

    def __init__(self, rng, number):
        self.rng, self.name = rng, f"e{number}"
        self.k = rng.choice([1, 1, 2, 2, 3, 4, 5])
        self.group = rng.choice([1, 1, 2, 3, 4])
        self.h = self.k * self.group
        self.dh = rng.choice([4, 8, 16, 16, 20, 32, 64])
        self.d = rng.choice([8, 24, 48, 64])
        self.sizes = {"B": rng.choice([1, 1, 2, 3, 5]), "S": rng.choice([1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 64, 100, 130])}
        self.captures = []
        self.declarations = []
        self.mask = self.make_mask()
        self.score = self.make_score()

    def declare(self, text):
        self.declarations.append(text)

    def make_mask(self):
        n, m = self.name, self.rng.randrange(9)
        w, g = self.rng.choice([1, 3, 16]), self.rng.choice([0, 2, 5])
        if m == 0:
            return "full"
        if m in (1, 2):
            return "causal"
        if m == 3:
            self.declare(f"mask m{n}(q, k) = 0 <= q - k < {w}")
        elif m == 4:
            self.declare(f"mask m{n}(q, k) = k <= q and (q - k < {w} or k < {g})")
        elif m == 5:
            self.declare(f"mask m{n}(q, k) = k <= q or k < {g}")
        elif m == 6:
            self.declare(f"mask m{n}(b, h, q, k) = not (k > q) and (q + k + h + b) % 3 != 0")
        else:
            self.declare(f"mask m{n}(b, q, k; doc: i32[B, S]) = k <= q and doc[b, q] == doc[b, k]")
            self.captures.append("doc")
            return f"m{n}(doc)"
        return f"m{n}"

    def make_score(self):
        n, m = self.name, self.rng.randrange(5)
        if m == 0:
            self.declare(f"score s{n}(s) = 5.0 * tanh(s / 5.0)")
        elif m == 1:
            self.declare(f"score s{n}(s, h, q, k) = s - 2.0 ** (-float(h + 1)) * float(q - k)")
        else:
            return ""
        return f", score = s{n}"

    def capture_arguments(self):
        return "".join(f", {c}: i32[B, S]" for c in self.captures)

    def attention(self):
        n, rng = self.name, self.rng
        keys, extra = "S", ""
        if not self.captures and rng.random() < 0.3:
            keys = "T"
            self.sizes["T"] = rng.choice([1, 4, 9, 30, 65])
        if rng.random() < 0.2:
            extra += f", sink = param(\"{self.name}.sink\", [{self.h}])"
        if not self.captures and rng.random() < 0.2:
            extra += f", q_offset = {rng.choice([1, 7])}"
        dv = rng.choice([self.dh, self.dh, 12])
        return (f"layer {n}(q: [B, S, {self.h}, {self.dh}], k: [B, {keys}, {self.k}, {self.dh}], v: [B, {keys}, {self.k}, {dv}]{self.capture_arguments()}) "
                f"-> [B, S, {self.h}, {dv}] = attention(q, k, v, mask = {self.mask}{self.score}{extra})")

    def qkv(self, bias, rope):
        h, k, dh = self.h, self.k, self.dh
        b = ", bias = true" if bias else ""
        angle = f", theta = 10000, dim = {self.rng.choice([dh, dh // 2])}, pairs = \"{self.rng.choice(['half', 'interleaved'])}\"" if rope else ""
        p = f'"{self.name}.'
        turn = (lambda x: f"rope({x}{angle})") if rope else (lambda x: x)
        return (f"  q = {turn(f'heads(linear(n, {h * dh}, name = {p}q{chr(34)}{b}), {h})')}\n"
                f"  k = {turn(f'heads(linear(n, {k * dh}, name = {p}k{chr(34)}{b}), {k})')}\n"
                f"  v = heads(linear(n, {k * dh}, name = \"{self.name}.v\"{b}), {k})\n"
                f"  o = linear(merge(attention(q, k, v, mask = {self.mask}{self.score})), {self.d}, name = \"{self.name}.o\"{b})\n")

    def block(self):
        f = self.rng.choice([16, 40, 96])
        return (f"layer {self.name}(x: [B, S, {self.d}]{self.capture_arguments()}) -> [B, S, {self.d}] {{\n  n = rmsnorm(x, eps = 1e-5, name = \"{self.name}.n1\")\n{self.qkv(False, True)}"
                f"  h = x + o\n  m = rmsnorm(h, eps = 1e-5, name = \"{self.name}.n2\")\n"
                f"  return h + linear(silu(linear(m, {f}, name = \"{self.name}.gate\")) * linear(m, {f}, name = \"{self.name}.up\"), {self.d}, name = \"{self.name}.down\")\n}}")

    def encoder(self):
        f = self.rng.choice([16, 40, 96])
        d = self.d
        return (f"layer {self.name}(x: [B, S, {d}]{self.capture_arguments()}) -> (hidden: [B, S, {d}], first: [B, {d}], mean: [B, {d}]) {{\n  n = x\n{self.qkv(True, False)}"
                f"  h = layernorm(x + o, eps = 1e-12, name = \"{self.name}.n1\")\n"
                f"  g = linear(gelu(linear(h, {f}, bias = true, name = \"{self.name}.up\")), {d}, bias = true, name = \"{self.name}.down\")\n"
                f"  y = layernorm(h + g, eps = 1e-12, name = \"{self.name}.n2\")\n"
                f"  return y, tanh(linear(y[:, 0], {d}, bias = true, name = \"{self.name}.pool\")), mean(y, dim = 1)\n}}")

    def text(self):
        kind = self.rng.choice([self.attention, self.attention, self.block, self.encoder])
        body = kind()
        return "\n".join(self.declarations + [body])


def make_spec(rng, first):
    configs = [Config(rng, first + i) for i in range(ENTRIES)]
    bodies = [c.text() for c in configs]
    free = "B, S, T" if any("T" in c.sizes for c in configs) else "B, S"
    axis = "S, T" if "T" in free else "S"
    grids = [f"sp({axis})", f"sp({axis}), dp(B)", f"sp({axis})", f"sp({axis})", f"dp(B), sp({axis})", f"sp({axis})"]
    number = first // ENTRIES
    return f"ulyc 1\nfree {free}\ngrid {grids[number % len(grids)]}\ndtype {DTYPES[number % len(DTYPES)]}\n" + "\n".join(bodies) + "\n", configs


def main():
    folder, count, seed, ulyc = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(seed)
    jobs, lines = [], []
    for first in range(0, count, ENTRIES):
        text, configs = make_spec(rng, first)
        path = f"{folder}/c{first}"
        with open(path + ".spec", "w") as f:
            f.write(text)
        jobs.append(path)
        for c in configs:
            sizes = " ".join(f"{k}={v}" for k, v in c.sizes.items())
            lines.append(f"{path}.so {c.name} {sizes}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        # Bits depend on the CPU level, so one level is enough for a spec; they take turns.
        flags = open("/proc/cpuinfo").read().split()
        levels = ["x86-64-v3"] + ["x86-64-v4"] * ("avx512f" in flags) + ["x86-64-v4,sapphirerapids"] * ("amx_bf16" in flags)
        compile_one = lambda job: subprocess.run([ulyc, job[1] + ".spec", "-o", job[1] + ".so", f"--march={levels[job[0] % len(levels)]}"], capture_output=True, text=True)
        results = pool.map(compile_one, enumerate(jobs))
        for path, done in zip(jobs, results):
            if done.returncode:
                sys.exit(f"{path}.spec (seed {seed}):\n{done.stderr}")
    with open(f"{folder}/configs", "w") as f:
        f.write("\n".join(lines[:count]) + "\n")


main()
