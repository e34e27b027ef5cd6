"""Plants a fault in one operation of a spec, compiles that, and compares it with the reference of the right spec: ulyrun --check has to name the operation of the fault's line.
Usage: check_faults.py BIN"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HEAD = """ulyc 1
const D = 32, H = 4, K = 2, V = 40
free  B, S
grid  sp(S)
dtype f32
mask band(q, k) = 0 <= q - k < 5
mask same(b, q, k; doc: i32[B, S]) = doc[b, q] == doc[b, k]
score cap(s) = 20.0 * tanh(s / 20.0)
"""
BODY = """model entry(x: [B, S, D], ids: i32[B, S], doc: i32[B, S]) -> (y: [B, S, D], z: [B, D], loss: [], next: i32[B, S]) {
  table = param("table", [V, D])
  other = param("other", [V, D])
  w1 = param("w1", [D, D])
  w2 = param("w2", [D, D])
  e = table[ids]
  x0 = x + 0.5 * e
  n = rmsnorm(x0, eps = 1e-5, name = "n")
  q = rope(heads(linear(n, weight = w1), H), theta = 10000)
  k = rope(heads(linear(n, 8 * K, name = "k"), K), theta = 10000)
  v = heads(linear(n, 8 * K, name = "v"), K)
  a = attention(q, k, v, mask = band and same(doc), score = cap, scale = 0.3)
  h = x0 + linear(merge(a), weight = w2)
  l = layernorm(h, eps = 1e-5, name = "l")
  g = silu(1.0 * linear(l, D, name = "g")) * linear(l, weight = w2)
  c = concat(g[..., 0 : 16], l[..., 16 : 32])
  s = shift(c, 1, fill = 0.25)
  m = softmax(1.0 * s) + 0.0 * other[ids] + 0.0 * table[ids]
  w = linear(m, weight = 1.5 * w1)
  y = h + 1.0 * w
  repeat 3 as i { y = y + 1.0 * tanh(linear(y, D, name = "r.{i}")) }
  z = 1.0 * mean(y, dim = 1)
  t = linear(y, V, name = "t")
  p = cross_entropy(t, ids % 4, ignore = 1)
  next = (ids + position(ids)) % 5
  return y, z, p, next
}
"""
# What is written instead of what. The fault is a relative one of about 1e-3, or as small as it can be.
FAULTS = [
    ("e = table[ids]", "e = other[ids]"),
    ("0.5 * e", "0.501 * e"),
    ("eps = 1e-5, name = \"n\"", "eps = 1e-3, name = \"n\""),
    ("linear(n, weight = w1)", "linear(n, weight = w2)"),
    ("H), theta = 10000)", "H), theta = 10000, pairs = \"interleaved\")"),
    ("mask = band", "mask = causal"),
    ("0.3)", "0.302)"),
    (" and same(doc)", ""),
    ("score = cap, ", ""),
    ("linear(merge(a), weight = w2)", "linear(merge(a), weight = w1)"),
    ("layernorm(h, eps = 1e-5", "layernorm(h, eps = 3e-3"),
    ("silu(1.0 *", "silu(1.002 *"),
    ("g[..., 0 : 16]", "g[..., 1 : 17]"),
    ("concat(g[..., 0 : 16], l[..., 16 : 32])", "concat(g[..., 0 : 16], g[..., 16 : 32])"),
    ("fill = 0.25", "fill = 0.2503"),
    ("shift(c, 1,", "shift(c, 2,"),
    ("softmax(1.0 * s)", "softmax(1.002 * s)"),
    ("1.5 * w1", "1.502 * w1"),
    ("y = h + 1.0", "y = h + 1.002"),
    ("y = y + 1.0", "y = y + 0.998"),
    ("z = 1.0", "z = 1.001"),
    ("ignore = 1", "ignore = 2"),
    ("% 5", "% 6"),
]
SIZES = "B=2,S=13"


def call(*args, code=0):
    run = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if run.returncode != code:
        sys.exit(f"{' '.join(str(a) for a in args)}\nexit code {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def numbered(body, n):
    return body.replace("model entry(", f"model e{n}(")


def entry(n, fault):
    old, new = fault
    assert BODY.count(old) == 1, old
    return numbered(BODY.replace(old, new), n)


def line_of(n, text):
    """The line of the spec in which entry n has |text|."""
    return HEAD.count("\n") + n * BODY.count("\n") + BODY[: BODY.index(text)].count("\n") + 1


def check(ulyrun, folder, model, n, fault, ranks):
    out = call(ulyrun, folder / model, "--entry", f"e{n}", "--at", SIZES, "--weights", "rand:seed=5", "--check", folder / "reference.so", "--ranks", ranks,
               *(a for i, name in enumerate(("x", "ids", "doc")) for a in ("--input", f"{name}=rand:seed={i}")), code=3)
    found = re.search(r"differs first in (\w+) at right\.spec:(\d+):(\d+) ", out)
    line = int(found[2]) if found else 0
    want = line_of(n, fault[0])
    if line == want:
        return ""
    return f"{model}: {fault[0]} -> {fault[1]}: line {line}, not {want}\n{out}"


def main():
    tools, failures = pathlib.Path(sys.argv[1]), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "right.spec").write_text(HEAD + "".join(numbered(BODY, n) for n in range(len(FAULTS))))
        (folder / "wrong.spec").write_text(HEAD + "".join(entry(n, fault) for n, fault in enumerate(FAULTS)))
        call(tools / "ulyc", "--target=reference", folder / "right.spec", "-o", folder / "reference.so")
        for model, options in ("fused.so", ["-O1"]), ("unfused.so", ["-O0"]):
            call(tools / "ulyc", *options, folder / "wrong.spec", "-o", folder / model)
            failures += filter(None, (check(tools / "ulyrun", folder, model, n, fault, n % 3 + 1) for n, fault in enumerate(FAULTS)))
    print("\n".join(failures))
    print(f"{2 * len(FAULTS) - len(failures)} of {2 * len(FAULTS)} named")
    return bool(failures)


sys.exit(main())
