"""ulyc itself fails: `crash_test.py BIN FOLDER_OF_A_LIBRARY_THAT_CRASHES`. Exit 70, a folder of the owner's own that holds what is needed, a replay that crashes again, and no output."""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

BIN, LIBRARY = (os.path.abspath(p) for p in sys.argv[1:3])
ULYC = os.path.join(BIN, "ulyc")
SPEC = '''ulyc 1
const D = 4
free B, S
grid sp(S)
dtype f32
model m(x: [B, S, D]) -> [B, S, D] = linear(x, D, name = "l")
'''


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


class Crash(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="uly-crash-test-")
        self.tmp = os.path.join(self.folder, "tmp")
        os.mkdir(self.tmp)
        with open(os.path.join(self.folder, "it's a.spec"), "w") as f:
            f.write(SPEC)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_one(self, args, how, after="insert_all_to_all", stdin=None, **env):
        env = dict(os.environ, LD_LIBRARY_PATH=LIBRARY, CRASH=how, CRASH_AFTER=after, TMPDIR=self.tmp, **env)
        return subprocess.run([ULYC] + args, cwd=self.folder, env=env, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)

    # A crash, and what it must have left. Returns the folder.
    def crash(self, args, how, signal, **more):
        p = self.run_one(args, how, **more)
        self.assertEqual(p.returncode, 70, p.stderr)
        self.assertIn(f"internal error ({signal})", p.stderr)
        self.assertIn("please report it with the folder " + self.tmp, p.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["it's a.spec", "tmp"])
        found = [os.path.join(self.tmp, d) for d in os.listdir(self.tmp)]
        self.assertEqual(len(found), 1)
        self.assertIn(found[0], p.stderr)
        self.assertEqual(stat.S_IMODE(os.stat(found[0]).st_mode), 0o700)
        for name in os.listdir(found[0]):
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(found[0], name)).st_mode) & 0o077, 0, name)
        return found[0]

    def check_folder(self, folder, signal):
        report = read(os.path.join(folder, "report.txt"))
        self.assertEqual(read(os.path.join(folder, "input0.spec")), SPEC)
        self.assertIn(f"ended with {signal}", report)
        self.assertIn("LLVM and MLIR 22.", report)
        self.assertIn("'-D' 'D=8' 'it'\\''s a.spec'", report)
        self.assertIn("libulyc_lower.so", report.split("backtrace:")[1])
        last = read(os.path.join(folder, "last.mlir"))
        self.assertTrue(last.startswith("// after insert_all_to_all\n"), last[:80])
        self.assertEqual(last.count("// after"), 1)
        self.assertIn("tensor<?x?x8xf32", last)
        again = read(os.path.join(folder, "again.txt"))
        self.assertIn(f"internal error ({signal})\n", again)

    def test_kinds(self):
        for how, signal in ("assert", "SIGABRT"), ("segv", "SIGSEGV"), ("stack", "SIGSEGV"), ("trap", "SIGILL"), ("thread", "SIGSEGV"):
            with self.subTest(how=how):
                folder = self.crash(["-D", "D=8", "it's a.spec", "-o", "out.so"], how, signal)
                self.check_folder(folder, signal)
                if how == "assert":
                    self.assertIn("broken invariant: depth < 0", read(os.path.join(folder, "again.txt")))
                shutil.rmtree(folder)

    def test_replay(self):
        folder = self.crash(["-D", "D=8", "it's a.spec"], "assert", "SIGABRT")
        p = self.run_one(["opt", "--run-reproducer", folder], "assert")
        self.assertEqual(p.returncode, 70)
        self.assertIn("broken invariant: depth < 0", p.stderr)
        self.assertEqual(os.listdir(self.tmp), [os.path.basename(folder)])
        # With a library in order it compiles, and writes nothing.
        before = sorted(os.listdir(folder))
        p = subprocess.run([ULYC, "opt", "--run-reproducer", folder], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(p.stdout, f"the command of {folder} did not crash\n")
        self.assertEqual(sorted(os.listdir(folder)), before)
        self.assertIn("func.func", read(os.path.join(folder, "last.mlir")))

    def test_ir_text(self):
        p = subprocess.run([ULYC, "it's a.spec", "--stop-after=build_ir"], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        with open(os.path.join(self.tmp, "a.mlir"), "w") as f:
            f.write(p.stdout)
        os.rename(os.path.join(self.tmp, "a.mlir"), os.path.join(self.folder, "tmp.mlir"))
        path = os.path.join(self.folder, "tmp.mlir")
        p2 = self.run_one(["opt", path, "--passes=infer_distribution"], "assert")
        os.unlink(path)
        self.assertEqual(p2.returncode, 70)
        folder = os.path.join(self.tmp, os.listdir(self.tmp)[0])
        self.assertEqual(read(os.path.join(folder, "input0.mlir")), p.stdout)
        self.assertTrue(read(os.path.join(folder, "last.mlir")).startswith("// after infer_distribution\n"))
        self.assertIn("internal error (SIGABRT)", read(os.path.join(folder, "again.txt")))

    def test_standard_input(self):
        folder = self.crash(["compile", "-", "-o", "out.so"], "assert", "SIGABRT", stdin=SPEC)
        self.assertEqual(read(os.path.join(folder, "input0.txt")), SPEC)
        self.assertIn("internal error (SIGABRT)", read(os.path.join(folder, "again.txt")))

    def test_no_place(self):
        os.chmod(self.tmp, 0o500)
        p = self.run_one(["it's a.spec"], "assert") if os.geteuid() else None
        os.chmod(self.tmp, 0o700)
        if p is None:
            os.rmdir(self.tmp)
            p = self.run_one(["it's a.spec"], "assert")
            os.mkdir(self.tmp)
        self.assertEqual(p.returncode, 70)
        self.assertIn("no folder can be made", p.stderr)

    # A user's mistake is none of ours.
    def test_mistakes_leave_nothing(self):
        with open(os.path.join(self.folder, "it's a.spec"), "w") as f:
            f.write(SPEC.replace("linear", "linaer"))
        p = self.run_one(["it's a.spec"], "assert")
        self.assertEqual(p.returncode, 1)
        self.assertEqual(os.listdir(self.tmp), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
