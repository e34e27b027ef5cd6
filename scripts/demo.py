"""The table that scripts/demo prints.   demo.py minilm MODEL_DIR [SENTENCE …]  |  demo.py llama TEXT_FILE

Compiles a spec with build/bin/ulyc, runs it with build/bin/ulyrun on 1 and on 4 ranks, and compares.
"""
import array
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

RANKS = 4
SENTENCES = [
    "long sequences need many devices.",
    "the all-to-all exchange turns a shard of the sequence with every head into the whole sequence with a shard of the heads, and back again once attention is done.",
    "short.",
]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip() or f"{command[0]} failed")
    return done.stdout


def save_npy(path, ids):
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': (1, {len(ids)}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array("i", ids).tobytes())


def load_npy(path):
    data = open(path, "rb").read()
    values = array.array("f")
    values.frombytes(data[10 + struct.unpack("<H", data[8:10])[0]:])
    return values


def load_tensor(path, name):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    if name not in header:
        return None
    begin, end = header[name]["data_offsets"]
    values = array.array("f" if header[name]["dtype"] == "F32" else "i")
    values.frombytes(data[8 + n + begin:8 + n + end])
    return values


def stats(text):
    """Bytes that each rank sent and the slowest rank's seconds, from ulyrun --stats."""
    rows = re.findall(r"^rank \d+ sent (\d+) bytes.* run ([0-9.e+-]+) s$", text, re.M)
    return [int(sent) for sent, _ in rows], max(float(seconds) for _, seconds in rows)


def share(n, r):
    return n // RANKS + (r < n % RANKS)


def formula(rows, layers, heads, kv_heads, dh):
    """Bytes that rank r sends in the attention layers' all-to-alls: s rows of the others' heads, h heads of the others' rows."""
    group = heads // kv_heads
    start = lambda n, r: r * (n // RANKS) + min(r, n % RANKS)
    h = [share(heads, r) for r in range(RANKS)]
    k = [-(-(start(heads, r) + h[r]) // group) - start(heads, r) // group if h[r] else 0 for r in range(RANKS)]
    s = [share(rows, r) for r in range(RANKS)]
    return [4 * layers * dh * (s[r] * sum(h[j] + 2 * k[j] for j in range(RANKS) if j != r) + h[r] * sum(s[j] for j in range(RANKS) if j != r)) for r in range(RANKS)]


def ulyrun(model, inputs, ranks, extra):
    return run(["build/bin/ulyrun", model, "--ranks", str(ranks), "--stats", "--repeat", "3"] + inputs + extra)


def describe(seconds):
    return f"{seconds * 1e3:.1f} ms"


def compile_spec(spec, folder):
    begin = time.monotonic()
    run(["build/bin/ulyc", spec, "-o", f"{folder}/model.so"])
    print(f"\ncompiled {spec} in {time.monotonic() - begin:.2f} s")
    return f"{folder}/model.so"


def one_sentence(model, weights, folder, ids):
    save_npy(f"{folder}/ids.npy", ids)
    inputs = ["--weights", weights, "--input", f"tokens=@{folder}/ids.npy"]
    results = {}
    for ranks in (1, RANKS):
        out = ulyrun(model, inputs, ranks, ["--output", f"embedding=@{folder}/e{ranks}.npy", "--output", f"hidden=@{folder}/h{ranks}.npy"])
        results[ranks] = stats(out)
    same = all(open(f"{folder}/{x}1.npy", "rb").read() == open(f"{folder}/{x}{RANKS}.npy", "rb").read() for x in "eh")
    return load_npy(f"{folder}/e1.npy"), load_npy(f"{folder}/h1.npy"), same, results


def reference_error(ids, hidden):
    path = "tests/models/minilm/reference.safetensors"
    for i in range(4):
        if load_tensor(path, f"input_ids.{i}") == array.array("i", ids):
            return max(abs(a - b) for a, b in zip(hidden, load_tensor(path, f"last_hidden_state.{i}")))
    return None


def minilm(directory, sentences):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(f"{directory}/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    sentences = sentences or SENTENCES
    all_ids = [tokenizer.encode(s).ids for s in sentences]
    for i, ids in enumerate(all_ids):
        if len(ids) > 512:
            sys.exit(f"sentence {i + 1} has {len(ids)} tokens; the model takes 512 at most")
    with tempfile.TemporaryDirectory() as folder:
        model = compile_spec("specs/minilm.spec", folder)
        rows = [one_sentence(model, f"{directory}/model.safetensors", folder, ids) for ids in all_ids]
    print("\nsentences")
    for i, s in enumerate(sentences):
        print(f"  {i + 1}  {len(all_ids[i]):3d} tokens  {s if len(s) <= 90 else s[:87] + '...'}")
    print("\nsimilarity (cosine)\n      " + "".join(f"{j + 1:8d}" for j in range(len(rows))))
    for i, a in enumerate(rows):
        print(f"  {i + 1:3d} " + "".join(f"{math.fsum(x * y for x, y in zip(a[0], b[0])):8.4f}" for b in rows))
    print(f"\n{'':6s}{'error against float64':>24s}{f'1 and {RANKS} ranks':>28s}{'1 rank':>10s}{f'{RANKS} ranks':>10s}")
    for i, (_, hidden, same, results) in enumerate(rows):
        error = reference_error(all_ids[i], hidden)
        print(f"  {i + 1:3d} {'no reference' if error is None else f'{error:.1e}':>24s}{'equal bit for bit' if same else 'DIFFERENT':>28s}"
              f"{describe(results[1][1]):>10s}{describe(results[RANKS][1]):>10s}")
    print(f"\nbytes that each of {RANKS} ranks sent a run: attention's all-to-alls by the formula, and {RANKS - 1} x 384 exact sums of 80 bytes for the mean")
    for i, (_, _, _, results) in enumerate(rows):
        expected = [b + (RANKS - 1) * 384 * 80 for b in formula(len(all_ids[i]), 6, 12, 12, 32)]
        print(f"  {i + 1:3d} sent {results[RANKS][0]}  formula {expected}{'' if results[RANKS][0] == expected else '  DIFFERENT'}")
    return all(same and results[RANKS][0] == [b + (RANKS - 1) * 384 * 80 for b in formula(len(ids), 6, 12, 12, 32)]
               for ids, (_, _, same, results) in zip(all_ids, rows))


def llama(text):
    with tempfile.TemporaryDirectory() as folder:
        model = compile_spec("specs/llama.spec", folder)
        inputs = ["--weights", "rand:seed=1", "--input", f"tokens=@{text}"]
        out = {ranks: ulyrun(model, inputs, ranks, ["--output", f"logits=@{folder}/l{ranks}.npy"]) for ranks in (1, RANKS)}
        same = open(f"{folder}/l1.npy", "rb").read() == open(f"{folder}/l{RANKS}.npy", "rb").read()
    print(f"\nspecs/llama.spec, seeded weights, {os.path.getsize(text)} bytes of {text}")
    print(f"  1 and {RANKS} ranks: {'equal bit for bit' if same else 'DIFFERENT'}")
    print(f"  time: {describe(stats(out[1])[1])} on 1 rank, {describe(stats(out[RANKS])[1])} on {RANKS}")
    print(f"  bytes that each rank sent: {stats(out[RANKS])[0]}")
    return same


good = minilm(sys.argv[2], sys.argv[3:]) if sys.argv[1] == "minilm" else llama(sys.argv[2])
sys.exit(0 if good else 3)
