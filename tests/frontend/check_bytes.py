"""What `ulyc check --at` says that the busiest rank sends, over each axis, is what `ulyrun` counts, and so are the bytes of values and of packed weights that a bind allocates.
Usage: check_bytes.py SPECS ULYC ULYRUN FOLDER"""
import pathlib
import re
import subprocess
import sys

# Captured tensors that come from other ranks, weights that are computed at load, numbers in a table, a loss whose logits are never whole, rows that move, sums and slices.
MOVES = """ulyc 1
const D = 24, H = 4, V = 500
free  B, S
grid  sp(S)
mask  same(b, q, k; doc: i32[B, S], first: i32[B, S]) = k <= q and doc[b, q] == doc[b, k] and first[0, q] >= 0
model moves(tokens: i32[B, S], doc: i32[B, S]) -> (loss: f32[], last: [B, D], all: [S]) {
  x = embed(tokens, V, D, name = "e")
  repeat 3 as i {
    h = heads(rmsnorm(x, name = "n.{i}"), H)
    x = x + linear(merge(attention(h, h, h, mask = same(doc, tokens))), weight = 0.5 * param("o.{i}", [D, D])) + 0.5 / (i + 1) * shift(x, 2)
  }
  return next_token_loss(linear(x, V, name = "head"), tokens, doc = doc), x[:, -1], softmax(sum(sum(x, dim = 2), dim = 0))
}
"""
CASES = [  # spec, -D, sizes, inputs, ranks; where those are grids, the spec's batch is split over dp
    ("attention", [], "B=1,S=37", ["q", "k", "v"], [1, 2, 3, 5, 12, 40]),
    ("attention", ["H=6", "K=3", "Dh=8"], "B=2,S=10", ["q", "k", "v"], [2, 4, 7]),
    ("llama", ["L=2", "D=64", "F=64"], "B=2,S=33", ["tokens"], [1, 3, 4]),
    ("minilm", ["L=2", "V=100", "D=48", "F=64", "H=4"], "B=1,S=21", ["tokens"], [1, 2, 5]),
    ("attention", ["H=6", "K=3", "Dh=8"], "B=5,S=10", ["q", "k", "v"], ["sp=1,dp=3", "sp=4,dp=2", "sp=3,dp=7"]),
    ("llama", ["L=2", "D=64", "F=64"], "B=3,S=33", ["tokens"], ["sp=3,dp=2", "sp=2,dp=4"]),
    ("minilm", ["L=2", "V=100", "D=48", "F=64", "H=4"], "B=3,S=21", ["tokens"], ["sp=2,dp=2"]),
    (MOVES, [], "B=3,S=21", ["tokens", "doc"], ["sp=1,dp=1", "sp=3,dp=1", "sp=2,dp=2", "sp=1,dp=4", "sp=5,dp=3"]),
    (MOVES, ["D=8", "H=2", "V=1000"], "B=2,S=300", ["tokens", "doc"], ["sp=1,dp=1", "sp=2,dp=2"]),
]


def counted(text, axis):
    """What the busiest rank sent over the axis."""
    return max(int(n) for n in re.findall(rf" bytes \([^)]*\b{axis} (\d+)" if axis else r"sent (\d+) bytes", text))


def row(text, name):
    return int(re.search(rf"^  {name} .*?(\d+) B$", text, re.M).group(1))


def said(text, axis):
    return row(text, f"sent by the busiest rank{f' over {axis}' if axis else ''}")


def memory(text):
    """Of values and of packed weights: the same on every rank."""
    (arena, received, weights), = set(re.findall(r" arena (\d+) received (\d+) weights (\d+) bytes", text))
    return int(arena) + int(received), int(weights)


def main():
    specs, ulyc, ulyrun, folder = sys.argv[1:]
    problems = cases = 0
    for spec, defines, at, inputs, all_ranks in CASES:
        grid, text = isinstance(all_ranks[0], str), spec if spec is MOVES else ""
        spec = "moves" if text else spec
        path, model = f"{specs}/{spec}.spec", f"{folder}/{spec}.so"
        if grid:
            text = text or pathlib.Path(path).read_text()
            path = f"{folder}/{spec}.spec"
            pathlib.Path(path).write_text(re.sub(r"^(grid +sp\(S\))", r"\1, dp(B)", text, flags=re.M))
        flags = [f"-D{d}" for d in defines]
        subprocess.run([ulyc, path, "-o", model, *flags], check=True)
        for ranks in all_ranks:
            where = ranks if grid else f"sp={ranks}"
            check = subprocess.run([ulyc, "check", path, *flags, "--at", f"{at},{where}"], check=True, capture_output=True, text=True).stdout
            run = [ulyrun, model, "--at", at, "--grid", where, "--weights", "rand:seed=1", "--stats"]
            for number, name in enumerate(inputs):
                run += ["--input", f"{name}=rand:seed={number}"]
            out = subprocess.run(run, check=True, capture_output=True, text=True)
            cases += 1
            needs = row(check, "values of a run, each rank"), row(check, "packed weights, each rank")
            if needs != memory(out.stdout):
                problems += 1
                print(f"{spec} {defines} at {at},{where}: check says {needs} bytes of values and packed weights, ulyrun has {memory(out.stdout)}")
            for axis in ("sp", "dp") if grid else (None,):
                cases += 1
                if said(check, axis) != counted(out.stdout, axis):
                    problems += 1
                    print(f"{spec} {defines} at {at},{where}{' over ' + axis if axis else ''}: check says {said(check, axis)}, ulyrun counts {counted(out.stdout, axis)}")
        pathlib.Path(model).unlink()
    print(f"{cases} cases, {problems} differ")
    return bool(problems)


sys.exit(main())
