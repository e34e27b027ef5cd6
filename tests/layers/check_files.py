"""Values of bf16 and f16 in files: what ulyrun takes for inputs and weights, what it writes, compares and refuses, and how many bytes ranks send.
Usage: check_files.py BIN"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(sys.argv.pop()).resolve()
B, S, D = 2, 6, 8
SPEC = """ulyc 1
const D = 8, H = 2
free  B, S
grid  sp(S)
dtype {0}
layer twice(x: [B, S, D], scale: f32[]) -> (y: [B, S, D], z: f32[B, S, D]) {{ return 2.0 * x, cast(x, f32) * scale }}
layer attend(x: [B, S, D]) -> [B, S, D] {{
  q = heads(linear(x, D, name = "q"), H)
  return linear(merge(attention(q, q, q, mask = causal)), D, name = "o")
}}
"""


def npy(path, descr, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, tuple(shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def read_npy(path):
    raw = path.read_bytes()
    n = struct.unpack("<H", raw[8:10])[0]
    return re.search("'descr': '([^']+)'", raw[10 : 10 + n].decode())[1], raw[10 + n :]


def safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    raw = path.read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    (name, tensor), = json.loads(raw[8 : 8 + n]).items()
    return name, tensor["dtype"], raw[8 + n :]


def floats(values):
    return struct.pack("<%df" % len(values), *values)


def bf16(values):
    """To nearest even; of these values none is halfway."""
    return b"".join(struct.pack("<H", (struct.unpack("<I", struct.pack("<f", v))[0] + 0x8000) >> 16) for v in values)


def f16(values):
    return struct.pack("<%de" % len(values), *values)


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.here = pathlib.Path(cls.folder.name)
        cls.x = [(i * 37 % 101 - 50) / 7 for i in range(B * S * D)]
        for dtype in "f32", "bf16", "f16":
            (cls.here / f"{dtype}.spec").write_text(SPEC.format(dtype))
            subprocess.run([TOOLS / "ulyc", f"{dtype}.spec", "-o", f"{dtype}.so"], cwd=cls.here, check=True)
        npy(cls.here / "x.npy", "<f4", (B, S, D), floats(cls.x))
        npy(cls.here / "scale.npy", "<f4", (), floats([0.5]))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_it(self, dtype, *args, code=0, entry="twice", says=()):
        command = [TOOLS / "ulyrun", f"{dtype}.so", "--entry", entry, *args]
        done = subprocess.run(command, cwd=self.here, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stdout + done.stderr)
        return done.stdout

    def test_numpy_has_no_bf16(self):
        halves = {"bf16": bf16, "f16": f16}
        for dtype, descr in ("bf16", "<f4"), ("f16", "<f2"):
            self.run_it(dtype, "--input", "x=@x.npy", "--input", "scale=@scale.npy", "--output", "y=@y.npy", "--output", "z=@z.npy")
            stored = halves[dtype](self.x)
            twice = halves[dtype]([2 * v for v in self.x])
            widened = b"".join(b"\0\0" + twice[i : i + 2] for i in range(0, len(twice), 2))
            self.assertEqual(read_npy(self.here / "y.npy"), (descr, widened if dtype == "bf16" else twice))
            values = struct.unpack(f"<{len(self.x)}e", stored) if dtype == "f16" else struct.unpack(f"<{len(self.x)}f", b"".join(b"\0\0" + stored[i : i + 2] for i in range(0, len(stored), 2)))
            self.assertEqual(read_npy(self.here / "z.npy"), ("<f4", floats([v / 2 for v in values])))
            self.run_it(dtype, "--input", "x=@x.npy", "--input", "scale=@scale.npy", "--output", "y=@y.safetensors", "--expect", "y=@y.npy", "--rtol", "0", "--atol", "0", says="y as expected")
            self.assertEqual(read_safetensors(self.here / "y.safetensors"), ("y", dtype.upper(), twice))

    def test_comparison_is_in_float64(self):
        wide = [2 * v * (1 + 0.001) for v in self.x]
        safetensors(self.here / "wide.safetensors", {"y": ("F64", [B, S, D], struct.pack(f"<{len(wide)}d", *wide))})
        args = ["--input", "x=@x.npy", "--input", "scale=@scale.npy", "--expect", "y=@wide.safetensors"]
        self.run_it("bf16", *args, "--rtol", "0.01", says="y as expected")
        self.run_it("bf16", *args, "--rtol", "0.0001", code=3, says="values differ by more than")

    def test_inputs_keep_their_dtype(self):
        scale = ["--input", "scale=@scale.npy"]
        safetensors(self.here / "x.safetensors", {"x": ("F32", [B, S, D], floats(self.x)), "h": ("BF16", [B, S, D], bf16(self.x)), "i": ("I32", [B, S, D], bytes(4 * len(self.x)))})
        self.run_it("bf16", "--input", "x=@x.safetensors:h", *scale)
        self.run_it("bf16", "--input", "x=@x.safetensors", *scale, code=1, says="input x: x.safetensors holds f32, the model takes bf16")
        self.run_it("f16", "--input", "x=@x.safetensors:h", *scale, code=1, says="input x: x.safetensors holds bf16, the model takes f16")
        self.run_it("f32", "--input", "x=@x.safetensors:h", *scale, code=1, says="input x: x.safetensors holds bf16, the model takes f32")
        npy(self.here / "double.npy", "<f8", (B, S, D), bytes(8 * len(self.x)))
        npy(self.here / "half.npy", "<f2", (B, S, D), f16(self.x))
        self.run_it("bf16", "--input", "x=@double.npy", *scale, code=1, says="double.npy holds f64, the model takes bf16")
        self.run_it("bf16", "--input", "x=@half.npy", *scale, code=1, says="half.npy holds f16, the model takes bf16")
        self.run_it("f16", "--input", "x=@half.npy", *scale)

    def test_weights_are_converted(self):
        numbers = [(i * 13 % 31 - 15) / 16 for i in range(2 * D * D)]
        makers = {"F32": floats, "F64": lambda v: struct.pack(f"<{len(v)}d", *v), "BF16": bf16, "F16": f16}
        hashes = set()
        for dtype, make in makers.items():  # numbers that all of them hold
            safetensors(self.here / "w.safetensors", {"q.weight": (dtype, [D, D], make(numbers[: D * D])), "o.weight": (dtype, [D, D], make(numbers[D * D :]))})
            note = [] if dtype == "BF16" else [f"2 of 2 tensors are converted, as from {dtype} to BF16"]
            out = self.run_it("bf16", "--input", "x=@x.npy", "--weights", "w.safetensors", entry="attend", says=note)
            hashes.add(re.search("hash ([0-9a-f]+)", out)[1])
        self.assertEqual(len(hashes), 1)
        for dtype in "I32", "F8_E4M3", "U16":
            size = {"I32": 4, "F8_E4M3": 1, "U16": 2}[dtype]
            safetensors(self.here / "w.safetensors", {"q.weight": (dtype, [D, D], bytes(size * D * D)), "o.weight": ("F32", [D, D], floats(numbers[: D * D]))})
            self.run_it("bf16", "--input", "x=@x.npy", "--weights", "w.safetensors", entry="attend", code=1, says=f"q.weight is {dtype} [8, 8] in the file, the model needs BF16 [8, 8]")

    def test_half_the_bytes(self):
        sent = {}
        for dtype in "f32", "bf16", "f16":
            out = self.run_it(dtype, "--at", f"B={B},S={S}", "--input", "x=rand:seed=1", "--weights", "rand:seed=2", "--ranks", "2", "--stats", entry="attend")
            sent[dtype] = [int(n) for n in re.findall(r"sent (\d+)", out)] or out
        self.assertEqual(sent["bf16"], sent["f16"])
        self.assertEqual(sent["f32"], [2 * n for n in sent["bf16"]])


unittest.main()
