"""Two grid axes through ulyrun: `grid_test.py BIN [MPIRUN]`. Sizes of the axes, the same outputs and formulas of bytes everywhere, faults and lost ranks by rank and place."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(sys.argv[1])
MPIRUN = sys.argv[2] if len(sys.argv) > 2 else None
ENV = dict(os.environ, UCX_MEM_MMAP_HOOK_MODE="none", ASAN_OPTIONS="detect_leaks=0")
H, K, DH, D, V = 6, 3, 8, 16, 20
B, S = 5, 11

SPEC = f"""ulyc 1
const H = {H}, K = {K}, Dh = {DH}, D = {D}, V = {V}
free B, S
grid sp(S), dp(B)
mask same(b, q, k; doc: i32[B, S]) = k <= q and (doc[b, q] + b) % 3 == (doc[b, k] + b) % 3
model block(ids: i32[B, S], doc: i32[B, S]) -> (x: [B, S, D], rows: [B, D], batch: [S, D]) {{
  x = embed(ids, V, D, name = "e")
  q = rope(heads(linear(x, H * Dh, name = "q"), H), theta = 10000)
  k = rope(heads(linear(x, K * Dh, name = "k"), K), theta = 10000)
  v = heads(linear(x, K * Dh, name = "v"), K)
  y = x + linear(merge(attention(q, k, v, mask = same(doc))), D, name = "o")
  return y, mean(y, dim = 1), sum(y, dim = 0)
}}
"""
ONE_AXIS = "ulyc 1\nfree B, S\ngrid sp(S)\nlayer f(x: [B, S, 4]) -> [B, 4] = sum(x, dim = 1)\n"


def share(n, p, r):
    return n // p + (r < n % p)


def start(n, p, r):
    return r * (n // p) + min(r, n % p)


def kv_heads(p, r):
    first, count = start(H, p, r), share(H, p, r)
    return -(-(first + count) // (H // K)) - first // (H // K) if count else 0


def sent(sp, dp, i, j):
    """Bytes that the rank at place i of sp and j of dp sends over each axis."""
    batch, rows = share(B, dp, j), share(S, sp, i)
    to_heads = sum(rows * batch * DH * 4 * (share(H, sp, p) + 2 * kv_heads(sp, p)) for p in range(sp) if p != i)
    to_rows = sum(share(S, sp, p) * batch * DH * 4 * share(H, sp, i) for p in range(sp) if p != i)
    documents = (sp - 1) * rows * batch * 4
    return to_heads + to_rows + documents + (sp - 1) * batch * D * 80, (dp - 1) * rows * D * 80


class Grid(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=".")
        cls.here = pathlib.Path(cls.folder.name).resolve()
        for name, text in ("block", SPEC), ("one", ONE_AXIS):
            (cls.here / f"{name}.spec").write_text(text)
            subprocess.run([BIN / "ulyc", cls.here / f"{name}.spec", "-o", cls.here / f"{name}.so"], check=True)
        cls.args = ["block.so", "--at", f"B={B},S={S}", "--input", "ids=rand:seed=1", "--input", "doc=rand:seed=2", "--weights", "rand:seed=3"]
        cls.outputs = cls.run_it(cls, *cls.args)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_it(self, *args, code=0, says=(), before=(), env=None):
        for _ in range(3):  # MPICH's launcher may die of SIGPIPE itself, as in ulyrun_test.py
            done = subprocess.run([*before, BIN / "ulyrun", *args], cwd=self.here, env=dict(ENV, **(env or {})), capture_output=True, text=True, timeout=60)
            if not before or done.returncode != -signal.SIGPIPE:
                break
        text = done.stdout + done.stderr
        assert done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}\n{text}"
        for part in [says] if isinstance(says, str) else says:
            assert part in text, f"{args}: no '{part}' in\n{text}"
        return text

    def fails(self, code, says, *args, **more):
        return self.run_it(*self.args, *args, code=code, says=says, **more)

    def check(self, sp, dp, *how, before=()):
        out = self.run_it(*self.args, "--stats", "--repeat", "2", *how, before=before)
        self.assertIn(self.outputs, out, f"{how}: other outputs")  # an MPI may say things of its own before
        for r in range(sp * dp):
            over_sp, over_dp = sent(sp, dp, r % sp, r // sp)
            place = f" (sp {r % sp}, dp {r // sp})" if sp > 1 and dp > 1 else ""
            self.assertIn(f"\nrank {r}{place} sent {over_sp + over_dp} bytes (sp {over_sp}, dp {over_dp}) arena ", out)

    def test_grids(self):
        self.check(1, 1)
        for sp, dp in (3, 2), (2, 3), (1, 4), (4, 1), (2, 8), (16, 1), (1, 16), (5, 3):
            with self.subTest(sp=sp, dp=dp):
                self.check(sp, dp, "--grid", f"sp={sp},dp={dp}")
        for sp, dp in (3, 2), (1, 3), (2, 4):
            with self.subTest(sp=sp, dp=dp):
                self.check(sp, dp, "--procs", str(sp * dp), "--grid", f"dp={dp}, sp={sp}".replace(" ", ""))

    def test_what_is_not_named(self):
        self.check(6, 1, "--ranks", "6")
        self.check(3, 2, "--ranks", "6", "--grid", "sp=3")
        self.check(3, 2, "--procs", "6", "--grid", "dp=2")
        self.check(1, 3, "--grid", "dp=3")
        self.check(3, 1, "--grid", "sp=3")

    @unittest.skipUnless(MPIRUN, "no mpirun")
    def test_mpi(self):
        for sp, dp, how in (4, 1, []), (2, 2, ["--grid", "sp=2"]), (3, 2, ["--grid", "sp=3,dp=2"]), (1, 4, ["--grid", "dp=4"]):
            with self.subTest(sp=sp, dp=dp):
                self.check(sp, dp, *how, before=[MPIRUN, "-n", str(sp * dp)])
        out = self.fails(2, "the grid sp=4 has 4 ranks, which does not go with 3", "--grid", "sp=4", before=[MPIRUN, "-n", "3"])
        self.assertEqual(out.count("which does not go"), 1)

    def test_wrong_grids(self):
        self.fails(2, "the grid sp=3,dp=2 has 6 ranks, which does not go with 4", "--ranks", "4", "--grid", "sp=3,dp=2")
        self.fails(2, "the grid dp=5 has 5 ranks, which does not go with 4", "--procs", "4", "--grid", "dp=5")
        self.fails(2, "no grid axis tp (there is: sp, dp)", "--grid", "tp=2")
        self.fails(2, "grid axis sp is given twice", "--grid", "sp=2,sp=2")
        self.fails(2, "--grid takes sp=3,dp=2, not '3x2'", "--grid", "3x2")
        self.fails(2, "--grid is given twice", "--grid", "sp=3", "--grid", "dp=2")
        for number in "0", "-1", "x", "", "99999999999":
            self.fails(2, f"--grid: '{number}' is not a number of ranks", "--grid", f"sp=2,dp={number}")
        self.fails(2, "at most 1024 ranks", "--grid", "sp=64,dp=64")
        self.fails(2, "at most 4 axes", "--grid", "a=1,b=1,c=1,d=1,e=1")
        one = ["one.so", "--at", "B=2,S=9", "--input", "x=rand:seed=1"]
        self.run_it(*one, "--ranks", "3", "--grid", "sp=3")
        self.run_it(*one, "--ranks", "6", "--grid", "sp=3", code=2, says="the grid sp=3 has 3 of 6 ranks, and the model no other axis for the rest: with a second one, for example "
                    "`grid sp(S), dp(B)` in the spec, they share the batch")
        self.run_it(*one, "--grid", "sp=3,dp=2", code=2, says="no grid axis dp (there is: sp); a second one, for example `grid sp(S), dp(B)` in the spec, splits the batch")

    def test_faults(self):
        shape = "{'descr': '<i4', 'fortran_order': False, 'shape': (%d, %d), }" % (B, S)
        ids = [7] * (B * S)
        ids[3 * S + 9] = V
        header = (shape + " " * (-(len(shape) + 11) % 64) + "\n").encode()
        (self.here / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"".join(i.to_bytes(4, "little") for i in ids))
        args = ["block.so", "--input", "ids=@bad.npy", "--input", "doc=rand:seed=2", "--weights", "rand:seed=3"]
        for how in [], ["--ranks", "3"], ["--grid", "sp=3,dp=2"], ["--procs", "4", "--grid", "sp=2"]:
            self.run_it(*args, *how, code=1, says=f"index {V} at [3, 9] is out of range: at least 0 and below {V}")
        self.run_it(*args, "--grid", "sp=3,dp=2", code=1, says=["[rank 0] (sp 0, dp 0) rank 5 (sp 2, dp 1): index"])

    def start_endless(self, n, grid, env=None):
        job = subprocess.Popen([BIN / "ulyrun", *self.args, "--procs", str(n), "--grid", grid, "--repeat", "100000000"], cwd=self.here, env=dict(ENV, **(env or {})),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(100):
            time.sleep(0.05)
            children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
            if len(children) == n:
                time.sleep(0.3)
                return job, [int(pid) for pid in children]
        self.fail("the processes do not start")

    def test_lost_processes(self):
        for victim in 1, 4:
            job, children = self.start_endless(6, "sp=3")
            begin = time.time()
            os.kill(children[victim], signal.SIGKILL)
            err = job.communicate(timeout=20)[1]
            self.assertLess(time.time() - begin, 2)
            self.assertEqual(job.returncode, 75, err)
            self.assertIn(f"rank {victim} (sp {victim % 3}, dp {victim // 3}) was killed by signal 9", err)
        job, children = self.start_endless(4, "dp=2", {"ULYRT_TIMEOUT": "2"})
        begin = time.time()
        os.kill(children[3], signal.SIGSTOP)
        err = job.communicate(timeout=20)[1]
        self.assertLess(time.time() - begin, 4)
        self.assertEqual(job.returncode, 75, err)
        self.assertRegex(err, r"^ulyrun: \[rank \d\] \(sp \d, dp \d\) rank 3( \(sp 1, dp 1\))? did not answer within 2 s: rank \d")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
