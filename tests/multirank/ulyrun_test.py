"""Runs ulyrun on a small model made by hand: `ulyrun_test.py ULYRUN MODEL [MPIRUN]`.

The model: z = x + table[ids]; y is z with its rows turned around; next = ids + 1. Rows are split over the ranks.
"""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ULYRUN, MODEL = (os.path.abspath(p) for p in sys.argv[1:3])
MPIRUN = sys.argv[3] if len(sys.argv) > 3 else None
ENV = dict(os.environ, UCX_MEM_MMAP_HOOK_MODE="none", ASAN_OPTIONS="detect_leaks=0")
B, S, D, IDS = 2, 11, 4, 10


def read(path):
    with open(path, "rb") as f:
        return f.read()


def npy(path, descr, shape, data, fortran=False):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, tuple(shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def read_npy(path):
    raw = read(path)
    n = struct.unpack("<H", raw[8:10])[0]
    header = eval(raw[10:10 + n].decode())
    return header["descr"], header["shape"], raw[10 + n:]


def safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def floats(values):
    return struct.pack("<%df" % len(values), *values)


def ints(values):
    return struct.pack("<%di" % len(values), *values)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=".")
        cls.here = os.path.abspath(cls.folder.name)
        rng = random.Random(1)
        cls.x = [f32(rng.uniform(-1, 1)) for _ in range(B * S * D)]
        cls.ids = [rng.randrange(IDS) for _ in range(B * S)]
        cls.table = [f32(rng.uniform(-1, 1)) for _ in range(IDS * D)]
        z = [[[f32(cls.x[(b * S + s) * D + d] + cls.table[cls.ids[b * S + s] * D + d]) for d in range(D)] for s in range(S)] for b in range(B)]
        cls.y = floats([z[b][S - 1 - s][d] for b in range(B) for s in range(S) for d in range(D)])
        cls.next = ints([i + 1 for i in cls.ids])
        npy(cls.path("x.npy"), "<f4", (B, S, D), floats(cls.x))
        npy(cls.path("ids.npy"), "<i4", (B, S), ints(cls.ids))
        npy(cls.path("y.npy"), "<f4", (B, S, D), cls.y)
        safetensors(cls.path("w.safetensors"), {"table.weight": ("F32", [IDS, D], floats(cls.table))})
        safetensors(cls.path("in.safetensors"), {"x": ("F32", [B, S, D], floats(cls.x)), "tokens": ("I32", [B, S], ints(cls.ids))})
        cls.args = ["--input", "x=@x.npy", "--input", "ids=@ids.npy", "--weights", "w.safetensors"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.here, name)

    def run_it(self, *args, code=0, says=None, before=(), env=None):
        for _ in range(3):  # MPICH's launcher may die of SIGPIPE itself, writing to a proxy whose ranks have already ended: that says nothing about ulyrun
            done = subprocess.run([*before, ULYRUN, *args], cwd=self.here, env=dict(ENV, **(env or {})), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            if not before or done.returncode != -signal.SIGPIPE:
                break
        out, err = done.stdout.decode(), done.stderr.decode()
        if code is not None:
            self.assertEqual(done.returncode, code, out + err)
        for text in [says] if isinstance(says, str) else says or []:
            self.assertIn(text, out + err)
        return out + err

    def fails(self, code, says, *args, **more):
        return self.run_it(MODEL, *args, code=code, says=says, **more)

    def modes(self):
        yield []
        for n in 1, 2, 3, 5, 11, 16:
            yield ["--ranks", str(n)]
        for n in 1, 2, 4:
            yield ["--procs", str(n)]

    def check_outputs(self, before, mode):
        for name in "out.npy", "next.npy":
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        self.run_it(MODEL, *self.args, "--output", "y=@out.npy", "--output", "next=@next.npy", *mode, before=before)
        self.assertEqual(read_npy(self.path("out.npy")), ("<f4", (B, S, D), self.y))
        self.assertEqual(read_npy(self.path("next.npy")), ("<i4", (B, S), self.next))

    def test_results(self):
        for mode in self.modes():
            with self.subTest(mode=mode):
                self.check_outputs([], mode)
        self.check_outputs([], ["--procs=3", "--threads=2", "--repeat", "3"])

    @unittest.skipUnless(MPIRUN, "no mpirun")
    def test_results_mpi(self):
        for n in 1, 2, 4:
            with self.subTest(n=n):
                self.check_outputs([MPIRUN, "-n", str(n)], [])

    def test_sources(self):
        lines = self.run_it(MODEL, *self.args)
        self.assertRegex(lines, r"^y f32 \[2, 11, 4\] min -?[\d.]+ mean -?[\d.e-]+ max [\d.]+ hash [0-9a-f]{16}\nnext i32 \[2, 11\] min 1 ")
        same = self.run_it(MODEL, "--input", "x=@in.safetensors", "--input", "ids=@in.safetensors:tokens", "--weights", "@w.safetensors")
        self.assertEqual(lines, same)
        with open(self.path("text"), "wb") as f:
            f.write(bytes([1, 2, 3, 9]))
        self.run_it(MODEL, "--at", "B=1", "--input", "x=rand:seed=7", "--input", "ids=@text", "--weights", "rand:seed=2", says="next i32 [1, 4] min 2 mean 4.75 max 10")
        seeded = [self.run_it(MODEL, "--at", "B=3,S=7", "--input", "x=rand:seed=7", "--input", "ids=rand:seed=8", "--weights", "rand:seed=2", *mode) for mode in self.modes()]
        self.assertEqual(len(set(seeded)), 1)

    def test_sizes(self):
        random_inputs = ["--input", "x=rand:seed=1", "--input", "ids=rand:seed=1", "--weights", "rand:seed=1"]
        self.run_it(MODEL, *self.args, "--at", "B=2,S=11")
        self.fails(1, "but S = 12", *self.args, "--at", "S=12")
        npy(self.path("short.npy"), "<i4", (B, S - 1), ints(self.ids[:B * (S - 1)]))
        self.fails(1, "dim 1 of ids is 10, but S = 11", "--input", "x=@x.npy", "--input", "ids=@short.npy", "--weights", "w.safetensors")
        self.fails(2, "the size B is not known", *random_inputs, "--at", "S=4")
        self.fails(2, "no size 'T'", *random_inputs, "--at", "T=4")
        self.fails(2, "'x' is not a size", *random_inputs, "--at", "S=x")
        self.fails(2, "S is 4 and 5", *random_inputs, "--at", "B=1,S=4", "--at", "S=5")
        self.fails(1, "S = 0, at least 1", *random_inputs, "--at", "B=1,S=0")
        self.fails(1, "B = 0, at least 1", *random_inputs, "--at", "B=0,S=1")
        self.fails(1, "overflow", *random_inputs, "--at", "B=9223372036854775807,S=9223372036854775807")

    def test_inputs(self):
        self.fails(2, "no --input for 'ids'", "--input", "x=@x.npy", "--weights", "w.safetensors")
        self.fails(2, "no input 'idz'; did you mean 'ids'?", *self.args, "--input", "idz=@ids.npy")
        self.fails(2, "input 'x' is given twice", *self.args, "--input", "x=@x.npy")
        self.fails(2, "write rand:seed=N, or @ids.npy for a file", *self.args[:2], "--input", "ids=ids.npy", *self.args[4:])
        npy(self.path("odd.npy"), "<i4" * 2000, (B, S), b"")
        self.assertLess(len(self.fails(1, "unsupported dtype", "--input", "x=@x.npy", "--input", "ids=@odd.npy", "--weights", "w.safetensors")), 200)
        self.fails(2, "NAME=SOURCE", "--input", "x")
        npy(self.path("long.npy"), "<i8", (B, S), struct.pack("<%dq" % (B * S), *self.ids))
        self.fails(1, "long.npy holds i64, the model takes i32", "--input", "x=@x.npy", "--input", "ids=@long.npy", "--weights", "w.safetensors")
        npy(self.path("flat.npy"), "<i4", (B * S,), ints(self.ids))
        self.fails(1, "flat.npy has shape [22], the model takes 2 dims", "--input", "x=@x.npy", "--input", "ids=@flat.npy", "--weights", "w.safetensors")
        npy(self.path("fortran.npy"), "<i4", (B, S), ints(self.ids), fortran=True)
        self.fails(1, "Fortran order", "--input", "x=@x.npy", "--input", "ids=@fortran.npy", "--weights", "w.safetensors")
        npy(self.path("cut.npy"), "<i4", (B, S), ints(self.ids)[:-1])
        self.fails(1, "truncated", "--input", "x=@x.npy", "--input", "ids=@cut.npy", "--weights", "w.safetensors")
        self.fails(74, "none.npy: No such file", "--input", "x=@none.npy", "--input", "ids=@ids.npy", "--weights", "w.safetensors")
        self.fails(1, "no tensor 'token' among 2; did you mean 'tokens'?", "--input", "x=@x.npy", "--input", "ids=@in.safetensors:token", "--weights", "w.safetensors")
        for bad in 10, -1:
            npy(self.path("bad.npy"), "<i4", (B, S), ints(self.ids[:7] + [bad] + self.ids[8:]))
            for mode in [], ["--ranks", "3"], ["--procs", "2"]:
                self.fails(1, str(bad), "--input", "x=@x.npy", "--input", "ids=@bad.npy", "--weights", "w.safetensors", *mode)

    def test_weights_in_several_files(self):
        inputs = self.args[:4]
        folder = self.path("parts")
        os.mkdir(folder)
        safetensors(f"{folder}/1.safetensors", {"more": ("U8", [3], b"abc")})
        safetensors(f"{folder}/2.safetensors", {"table.weight": ("F32", [IDS, D], floats(self.table))})
        index = f"{folder}/model.safetensors.index.json"
        with open(index, "w") as f:
            json.dump({"metadata": {}, "weight_map": {"more": "1.safetensors", "table.weight": "2.safetensors"}}, f)
        note = "note: %s: 1 of 2 tensors are not used: more\n"
        whole = self.run_it(MODEL, *inputs, "--weights", "w.safetensors")
        self.assertEqual(self.run_it(MODEL, *inputs, "--weights", "parts/model.safetensors.index.json"), whole + note % "parts/model.safetensors.index.json")
        for mode in self.modes():
            self.assertEqual(self.run_it(MODEL, *inputs, "--weights", "parts", *mode), whole + note % "parts")
        safetensors(f"{folder}/2.safetensors", {"table.weight": ("F32", [D, IDS], floats(self.table))})
        self.fails(1, "parts/2.safetensors: tensor table.weight is F32 [4, 10] in the file", *inputs, "--weights", "parts")
        os.unlink(f"{folder}/2.safetensors")
        self.fails(74, "parts/model.safetensors.index.json: parts/2.safetensors: No such file", *inputs, "--weights", "parts")

    def test_weights(self):
        inputs = self.args[:4]
        self.fails(1, "table.weight", *inputs)
        safetensors(self.path("bad.safetensors"), {"table.wieght": ("F32", [IDS, D], floats(self.table))})
        self.fails(1, "no tensor 'table.weight' [10, 4], which the model needs; did you mean 'table.wieght'?", *inputs, "--weights", "bad.safetensors")
        safetensors(self.path("bad.safetensors"), {"table.weight": ("F32", [D, IDS], floats(self.table))})
        self.fails(1, "table.weight is F32 [4, 10] in the file, the model needs F32 [10, 4]", *inputs, "--weights", "bad.safetensors")
        extra = {"table.weight": ("F32", [IDS, D], floats(self.table)), "more": ("F8_E5M2", [3], b"abc")}
        safetensors(self.path("extra.safetensors"), extra)
        self.run_it(MODEL, *inputs, "--weights", "extra.safetensors", says="note: extra.safetensors: 1 of 2 tensors are not used: more")
        self.fails(1, "1 of 2 tensors are not the model's", *inputs, "--weights", "extra.safetensors", "--strict-weights")
        with open(self.path("cut.safetensors"), "wb") as f:
            f.write(read(self.path("w.safetensors"))[:-1])
        self.fails(1, "truncated", *inputs, "--weights", "cut.safetensors")
        self.fails(74, "No such file", *inputs, "--weights", "none.safetensors")
        self.fails(2, "--weights takes a whole file", *inputs, "--weights", "w.safetensors:table.weight")
        safetensors(self.path("nan.safetensors"), {"table.weight": ("F32", [IDS, D], b"\xff" * (4 * IDS * D))})
        self.run_it(MODEL, *inputs, "--weights", "nan.safetensors", says="y f32 [2, 11, 4] min nan mean nan max nan not finite 88 ")

    def test_weights_of_other_dtypes(self):
        inputs = ["--input", "x=@x.npy", "--input", "ids=@ids.npy", "--output", "y=@other.npy"]
        bf16 = [f32(w) for w in struct.unpack("<%df" % len(self.table), b"".join(b"\0\0" + floats([w])[2:] for w in self.table))]
        f16 = list(struct.unpack("<%de" % len(self.table), struct.pack("<%de" % len(self.table), *self.table)))
        for dtype, raw, table in (("F64", struct.pack("<%dd" % len(self.table), *self.table), self.table),
                                  ("BF16", b"".join(floats([w])[2:] for w in self.table), bf16),
                                  ("F16", struct.pack("<%de" % len(f16), *f16), f16)):
            safetensors(self.path("other.safetensors"), {"table.weight": (dtype, [IDS, D], raw)})
            self.run_it(MODEL, *inputs, "--weights", "other.safetensors", says=f"1 of 1 tensors are converted, as from {dtype} to F32")
            y = floats([f32(self.x[(b * S + S - 1 - s) * D + d] + table[self.ids[b * S + S - 1 - s] * D + d]) for b in range(B) for s in range(S) for d in range(D)])
            self.assertEqual(read_npy(self.path("other.npy"))[2], y)
        for dtype, size in ("I32", 4), ("I64", 8), ("U8", 1), ("BOOL", 1), ("F8_E4M3", 1), ("f32", 4):
            safetensors(self.path("other.safetensors"), {"table.weight": (dtype, [IDS, D], bytes(IDS * D * size))})
            self.fails(1, f"table.weight is {dtype} [10, 4] in the file, the model needs F32 [10, 4]", *inputs, "--weights", "other.safetensors")

    def test_expect(self):
        says = self.run_it(MODEL, *self.args, "--expect", "y=@y.npy", "--ranks", "2")
        self.assertIn("y as expected: largest difference 0", says)
        values = list(struct.unpack("<%df" % (B * S * D), self.y))
        values[(1 * S + 3) * D + 2] += 0.5
        npy(self.path("wrong.npy"), "<f8", (B, S, D), struct.pack("<%dd" % len(values), *values))
        self.fails(3, ["1 of 88 values differ", "worst at [1, 3, 2]: got ", ", expected "], *self.args, "--expect", "y=@wrong.npy")
        self.run_it(MODEL, *self.args, "--expect", "y=@wrong.npy", "--atol", "0.6")
        values[0] = float("nan")
        npy(self.path("wrong.npy"), "<f8", (B, S, D), struct.pack("<%dd" % len(values), *values))
        self.fails(3, "worst at [0, 0, 0]: got ", *self.args, "--expect", "y=@wrong.npy", "--atol", "0.6")
        npy(self.path("wrong.npy"), "<f4", (B, S * D), self.y)
        self.fails(3, "y has shape [2, 11, 4], expected is [2, 44]", *self.args, "--expect", "y=@wrong.npy")
        self.fails(2, "no output 'z'", *self.args, "--expect", "z=@y.npy")

    def test_usage(self):
        self.run_it(code=2, says="usage: ulyrun")
        out = self.run_it("--help", says="--strict-weights")
        self.assertTrue(all(len(line) <= 80 for line in out.splitlines()) and len(out.splitlines()) <= 24)
        self.run_it("--version", says="ulyrun ")
        self.run_it("--ranks", "2", code=2, says="no model is named")
        self.fails(2, "unknown option --rank; did you mean --ranks?", "--rank", "2")
        for option, most in ("--ranks", 1024), ("--procs", 128), ("--threads", 4096):
            for value in "0", "two", "-1", "", str(most + 1):
                self.fails(2, "%s takes a number from 1 to %d, not '%s'" % (option, most, value), option + "=" + value)
        self.fails(2, "--ranks is given twice", "--ranks", "2", "--ranks", "3")
        self.fails(2, "--ranks is given twice", "--ranks=2", "--ranks=2")
        self.fails(2, "--rtol is given twice", "--rtol=1", "--rtol=2")
        self.fails(2, "--weights is given twice", "--weights=rand:seed=1", "--weights=rand:seed=1")
        self.fails(2, "--ranks needs N", "--ranks")
        self.fails(2, "exclude each other", "--ranks", "2", "--procs", "2")
        self.fails(2, "a group has 1 to 128 processes, not 300", *self.args, "--ranks", "300", env={"ULYRT_TRANSPORT": "shm"})
        self.fails(2, "mpirun sets the ranks", "--ranks", "2", env={"PMI_SIZE": "junk"})
        self.fails(2, "--strict-weights takes no value", "--strict-weights=1")
        self.fails(2, "no entry 'tern'; did you mean 'turn'?", "--entry", "tern")
        self.fails(2, "one model at a time", "other.so")
        self.run_it("none.so", code=74, says="none.so")
        self.run_it("w.safetensors", code=1, says="not a model")
        self.run_it(MODEL, *self.args, "--ranks", "2", says="y f32", env={"ULYRT_TRANSPORT": "shm"})
        self.fails(2, "ULYRT_TRANSPORT is self", *self.args, "--ranks", "2", env={"ULYRT_TRANSPORT": "self"})
        self.fails(2, 'ULYRT_TIMEOUT is "soon"', *self.args, "--ranks", "2", env={"ULYRT_TIMEOUT": "soon"})
        for value in "two", "-1", "4097", "nan", "1e400":
            self.fails(2, 'ULYRT_THREADS is "%s", expected a number from 0 to 4096' % value, *self.args, env={"ULYRT_THREADS": value})

    def test_outputs(self):
        old = b"old content"
        for target in "kept.npy", "kept.safetensors":
            with open(self.path(target), "wb") as f:
                f.write(old)
        self.fails(74, "No such file", *self.args, "--output", "y=@no/such/folder.npy")
        self.fails(74, "is a directory", *self.args, "--output", "y=@.")
        self.fails(74, "No space left", *self.args, "--output", "y=@/dev/full")
        self.fails(2, "no output 'x'", *self.args, "--output", "x=@x2.npy")
        self.fails(2, "the outputs 'y' and 'next' cannot both be written to kept.npy", *self.args, "--output", "y=@kept.npy", "--output", "next=@kept.npy")
        self.fails(3, "differ", *self.args, "--output", "y=@kept.npy", "--expect", "y=@x.npy")
        self.assertNotEqual(read(self.path("kept.npy")), old)
        closed = ["bash", "-c", 'exec "$@" <&- >&- 2>&-', "-"]
        for mode in [], ["--procs", "2"]:
            self.run_it(MODEL, *self.args, "--output", "y=@closed.npy", *mode, before=closed, code=74)
            self.assertEqual(read_npy(self.path("closed.npy"))[2], self.y)
        limited = ["bash", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "-"]
        self.fails(74, "File too large", *self.args, "--output", "y=@kept.safetensors", before=limited)
        self.assertEqual(read(self.path("kept.safetensors")), old)
        self.run_it(MODEL, *self.args, "--output", "y=@kept.safetensors")
        self.run_it(MODEL, *self.args, "--expect", "y=@kept.safetensors")
        self.assertFalse([name for name in os.listdir(self.here) if name.startswith(".")])

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_failing_system_calls(self):
        arguments = [ULYRUN, MODEL, *self.args, "--output", "y=@target.npy", "--output", "next=@next.npy"]
        expected = read(self.path("y.npy"))[-len(self.y):]
        for call, error in ("write", "ENOSPC"), ("fsync", "EIO"), ("linkat", "EACCES"), ("rename", "EIO"):
            for when in 1, 2, 3, 4:
                with open(self.path("target.npy"), "wb") as f:
                    f.write(b"old")
                trace = ["strace", "-f", "-qq", "-o", "trace.txt", "-e", "trace=" + call, "-e", "inject=%s:error=%s:when=%d" % (call, error, when)]
                done = subprocess.run(trace + arguments, cwd=self.here, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
                injected = b"INJECTED" in read(self.path("trace.txt"))
                with self.subTest(call=call, when=when):
                    self.assertEqual(done.returncode, 74 if injected else 0, done.stderr)
                    now = read(self.path("target.npy"))
                    self.assertTrue(now == b"old" or now.endswith(expected))
                    self.assertFalse([name for name in os.listdir(self.here) if name.endswith(".tmp")])

    def test_bytes_sent(self):
        for n in 2, 3, 5:
            for mode in "--ranks", "--procs":
                out = self.run_it(MODEL, *self.args, mode, str(n), "--repeat", "2", "--stats")
                for r in range(n):
                    rows = S // n + (r < S % n)
                    self.assertIn("rank %d sent %d bytes " % (r, 4 * B * D * rows * (n - 1)), out)

    @unittest.skipUnless(MPIRUN, "no mpirun")
    def test_mpi_speaks_once(self):
        two = [MPIRUN, "-n", "2"]
        out = self.run_it(MODEL, *self.args, "--ranks", "2", code=2, before=two, says="mpirun sets the ranks")
        self.assertEqual(out.count("mpirun sets the ranks"), 1)
        out = self.run_it(MODEL, *self.args, before=two)
        self.assertEqual(out.count("y f32"), 1)
        out = self.run_it(MODEL, *self.args, "--expect", "y=@x.npy", before=two, code=3)
        self.assertEqual(out.count("worst at"), 1)
        out = self.run_it(MODEL, "--input", "x=@none.npy", "--input", "ids=@ids.npy", before=two, code=74)
        self.assertEqual(out.count("none.npy: No such file"), 1)
        self.run_it(MODEL, *self.args, before=two, env={"ULYRT_MPI": "/none.so"}, code=69, says="the MPI transport is not there")

    def start_endless(self, n, env=None):
        job = subprocess.Popen([ULYRUN, MODEL, *self.args, "--procs", str(n), "--repeat", "1000000"], cwd=self.here, env=dict(ENV, **(env or {})),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.3)
        with open("/proc/%d/task/%d/children" % (job.pid, job.pid)) as f:
            return job, [int(pid) for pid in f.read().split()]

    def test_lost_processes(self):
        before = set(os.listdir("/dev/shm"))
        for trial in range(5):
            job, children = self.start_endless(2 + trial % 3)
            victim = trial % len(children)
            start = time.time()
            os.kill(children[victim], signal.SIGKILL)
            err = job.communicate(timeout=20)[1].decode()
            self.assertLess(time.time() - start, 1.5)
            self.assertEqual(job.returncode, 75, err)
            self.assertIn("rank %d was killed by signal 9" % victim, err)
        job, children = self.start_endless(3, {"ULYRT_TIMEOUT": "2"})
        start = time.time()
        os.kill(children[1], signal.SIGSTOP)
        err = job.communicate(timeout=20)[1].decode()
        self.assertLess(time.time() - start, 3.5)  # named at 2 s; the rest is for the other processes to end
        self.assertEqual(job.returncode, 75, err)
        self.assertIn("rank 1 did not answer within 2 s", err)
        job, children = self.start_endless(2)
        job.kill()
        job.communicate()
        time.sleep(0.3)
        for pid in children:
            self.assertFalse(os.path.exists("/proc/%d" % pid) and b"ulyrun" in read("/proc/%d/cmdline" % pid))
        self.assertEqual(set(os.listdir("/dev/shm")), before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
