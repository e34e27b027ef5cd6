"""The n-th call of a function fails, or does less than asked, for every n: `faults_test.py BIN LIBFAULTS`.

A command then ends as if nothing had happened (signals, short counts), or with a documented exit code and a message that says what failed and why. The file that it writes is the old
one or the new one, whole; nothing is left beside it.
"""
import concurrent.futures
import itertools
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

BIN, LIBFAULTS = (os.path.abspath(p) for p in sys.argv[1:3])
LONG = os.environ.get("ULY_TEST_MODE") == "long"
QUICK = os.environ.get("ULY_TEST_MODE") == "quick"

SPEC = '''ulyc 1
free B, S
grid sp(S)
dtype f32
model m(x: [B, S, 4]) -> [B, S, 4] = linear(x, 4, name = "l")
'''
KINDS = {
    "open": ["EACCES", "EMFILE", "EINTR"], "read": ["EIO", "EINTR", "short"], "write": ["ENOSPC", "EIO", "EINTR", "short"], "fsync": ["EIO", "EINTR"],
    "close": ["EIO"], "rename": ["EIO"], "linkat": ["ENOSPC", "EPERM"], "memfd_create": ["EMFILE"], "mmap": ["ENOMEM"], "waitpid": ["EINTR"], "getrandom": ["EIO"],
}
CONFIG = '{"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8, "vocab_size": 16}'
REASONS = {"EACCES": "Permission denied", "EMFILE": "Too many open files", "EIO": "nput/output error", "ENOSPC": "No space left", "EPERM": "Operation not permitted",
           "ENOMEM": "memory"}
RETRIED = ("EINTR", "short")
NO_CRASH = {0, 1, 69, 70, 71, 74}


def safetensors(name, dims, n):
    header = json.dumps({name: {"dtype": "F32", "shape": dims, "data_offsets": [0, n]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(n)


def npy(dims, n):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(dims)}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(n)


def read(path):
    with open(path, "rb") as f:
        return f.read()


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="uly-faults-")
        cls.number = itertools.count()
        cls.model = cls.run_one(["ulyc", "m.spec", "-o", "out"], None)[2]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top)

    # The exit code, standard error, what `out` holds afterwards, other new names, and how often each function was called.
    @classmethod
    def run_one(cls, args, fault, old=b"old"):
        folder = os.path.join(cls.top, str(next(cls.number)))
        os.mkdir(folder)
        os.mkdir(folder + ".tmp")
        files = {"m.spec": SPEC.encode(), "config.json": CONFIG.encode(), "w.safetensors": safetensors("l.weight", [4, 4], 64), "x.npy": npy([1, 5, 4], 80)}
        if args[0] != "ulyc" or args[1] == "inspect":
            files["m.so"] = cls.model
        for name, data in files.items():
            if name in args or any(a.endswith(name) for a in args):
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(data)
        if old is not None:
            with open(os.path.join(folder, "out"), "wb") as f:
                f.write(old)
        before = set(os.listdir(folder))
        env = dict(os.environ, LD_PRELOAD=LIBFAULTS, FAULTS_COUNT=folder + ".count", TMPDIR=folder + ".tmp", LC_ALL="C")
        if fault:
            env["FAULTS"] = " ".join(map(str, fault))
        p = subprocess.run([os.path.join(BIN, args[0])] + args[1:], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=60, preexec_fn=lambda: os.umask(0o077))
        out = os.path.join(folder, "out")
        held = read(out) if os.path.exists(out) else None
        new = set(os.listdir(folder)) - before - {"out"}
        counts = {}
        if os.path.exists(folder + ".count"):
            for line in read(folder + ".count").decode().splitlines():
                program, name, n = line.split()
                counts[name] = max(counts.get(name, 0), int(n))
        return p.returncode, p.stderr.decode(errors="replace"), held, new, counts, p.stdout

    def check(self, args, fault, code, said, held, new, wanted, old):
        what = f"{' '.join(args)} with {fault}: exit {code}, {said!r}"
        call, n, kind = fault
        self.assertIn(code, NO_CRASH, what)
        self.assertEqual(new, set(), what)
        self.assertIn(held, (old, wanted), what)
        if kind in RETRIED:
            self.assertEqual(code, 0, what)
        if code == 0:
            self.assertEqual(held, wanted, what)
        elif kind == "fail":
            self.assertRegex(said, "memory|bad_alloc|LLVM|cannot load", what)  # the dynamic linker names other reasons
            self.assertTrue(code != 1 or "cannot load" in said, what)
        else:
            self.assertIn(REASONS[kind], said, what)

    def every_call(self, args, writes, old=b"old", kinds=KINDS, allocs=None):
        code, said, wanted, new, counts, _ = self.run_one(args, None, old)
        self.assertEqual((code, new), (0, set()), said)
        if not writes:
            self.assertEqual(wanted, old)
        faults = [(call, n, kind) for call in kinds for n in range(1, counts[call] + 1) for kind in kinds[call]]
        faults += allocs(counts) if allocs else [("alloc", n, "fail") for n in range(1, counts["alloc"] + 1)]
        if QUICK:
            faults = random.Random(1).sample(faults, min(len(faults), 40))
        self.assertGreater(len(faults), 2)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for fault, result in zip(faults, pool.map(lambda f: self.run_one(args, f, old), faults)):
                with self.subTest(fault=fault):
                    self.check(args, fault, *result[:4], wanted, old)

    def test_check(self):
        self.every_call(["ulyc", "check", "m.spec"], False)

    def test_inspect(self):
        self.every_call(["ulyc", "inspect", "--program", "m.so"], False)

    def test_run(self):
        args = ["ulyrun", "m.so", "--input", "x=@x.npy", "--weights", "w.safetensors", "--threads", "1", "--output", "out=@out"]
        self.every_call(args, True)

    def test_import(self):
        self.every_call(["ulyc", "import", "config.json", "-o", "out"], True)

    # The file is laid out where it stands.
    def test_format(self):
        self.every_call(["ulyc", "fmt", "out"], True, b"ulyc 1\nlayer l(x:f32[4])->[4]=x\n")

    # LLVM allocates tens of thousands of times, and ends the process where it cannot: some of them.
    def test_compile(self):
        seed = random.randrange(1 << 30)
        print(f"seed {seed}", file=sys.stderr)
        pick = random.Random(seed)

        def some(counts):
            return [("alloc", pick.randrange(1, counts["alloc"]), "fail") for _ in range(200 if LONG else 8)]
        self.every_call(["ulyc", "m.spec", "-o", "out"], True, allocs=some)
        self.every_call(["ulyc", "m.spec", "-o", "out"], True, None, {"write": [], "linkat": KINDS["linkat"], "rename": ["EIO"], "fsync": ["EIO"]}, lambda counts: [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
