"""Names that would be code somewhere: `names_test.py BIN`. They change no byte of code, only the tables that hold them, and are shown so that they control no terminal."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

BIN = os.path.abspath(sys.argv[1])
SPEC = '''ulyc 1
free B, S
grid sp(S)
dtype f32
layer l(x: [B, S, 4]) -> [B, S, 4] = linear(x, weight = param("%s", [4, 4])) * sigmoid(x) + param("%s", [4])
'''
HOSTILE = ["%s%n%d%99999999x", "'; rm -rf / #", "$(reboot)`reboot`", "\\x90\\\\n\\", "<!--<script>&amp;", "/ ) ; int main //", "../../../../etc/passwd", "k0_GEMM.x86-64-v3",
           "ulyc_model", ".text", "a b\u00a0c", "\u0430\u0435\u043e.weight", "\u202egnp.exe", "zero\u200bwidth", "\U0001f642" * 40, "x" * 4096, "-", "a" + "." * 60, "caf\u00e9"]


def read(path):
    with open(path, "rb") as f:
        return f.read()


# Name and bytes of every section.
def sections(raw):
    at, = struct.unpack_from("<Q", raw, 40)
    size, count, names = struct.unpack_from("<HHH", raw, 58)
    rows = [struct.unpack_from("<IIQQQQ", raw, at + i * size) for i in range(count)]
    text = raw[rows[names][4]:rows[names][4] + rows[names][5]]
    return [(text[row[0]:text.index(b"\0", row[0])].decode(), row[3], raw[row[4]:row[4] + row[5]] if row[1] != 8 else b"") for row in rows]


class Names(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="uly-names-")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_one(self, *args, code=0):
        p = subprocess.run([os.path.join(BIN, args[0])] + list(args[1:]), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(p.returncode, code, p.stderr.decode(errors="replace"))
        return p.stdout + p.stderr

    def compile(self, text, spec="m.spec", out="m.so"):
        with open(os.path.join(self.folder, spec), "w") as f:
            f.write(text)
        self.run_one("ulyc", spec, "-o", out)
        return read(os.path.join(self.folder, out))

    def kernels(self, out="m.so"):
        return self.run_one("ulyc", "inspect", "--kernels", out)[self.run_one("ulyc", "inspect", "--kernels", out).index(b"\n"):].split(b"entry")[0]

    # Nothing that moves a cursor, hides or turns text around.
    def check_shown(self, shown):
        text = shown.decode()
        self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f-\xa0\u200b-\u200f\u202a-\u202e\u2060-\u206f]", text), text[:500])

    def test_code(self):
        plain = self.compile(SPEC % ("plain.weight", "plain.bias"))
        hashes = [line.split(b"code ")[1] for line in self.kernels().split(b"\n") if b"code " in line]
        self.assertGreater(len(hashes), 1)
        for name in HOSTILE:
            with self.subTest(name=name[:40]):
                self.compile(SPEC % (name, name + ".b" if len(name) < 4000 else "b"))
                self.assertEqual([line.split(b"code ")[1] for line in self.kernels().split(b"\n") if b"code " in line], hashes)
                for args in ("inspect", "m.so"), ("inspect", "--program", "m.so"), ("check", "m.spec"), ("check", "--types", "m.spec"):
                    self.check_shown(self.run_one("ulyc", *args))
        self.assertTrue(plain)

    # Names of the same length: every section but tables and note is the same.
    def test_sections(self):
        one, two = (sections(self.compile(SPEC % (name, "b"))) for name in ("plain.weight", "';\\%s<\u202eabc"))
        self.assertEqual([s[:2] for s in one], [s[:2] for s in two])
        different = [a[0] for a, b in zip(one, two) if a[2] != b[2]]
        self.assertEqual(set(different) - {".rodata", ".note.ulyc"}, set())
        tables = [(a[2], b[2]) for a, b in zip(one, two) if a[0] == ".rodata"]
        self.assertTrue(tables)
        for a, b in tables:  # the name where it stands, and two hashes
            self.assertLessEqual(sum(x != y for x, y in zip(a, b)), 12 + 32 + 32)

    def test_many_and_long(self):
        text = "ulyc 1\nfree B, S\ndtype f32\nmodel m(x: [B, S, 4]) -> [B, S, 4] {\n"
        self.compile(text + '  repeat 5000 as i { x = linear(x, 4, name = "%s{i}", bias = true) }\n  return x\n}\n' % "'%s\\u202e;")
        shown = self.run_one("ulyc", "inspect", "m.so")
        self.assertEqual(shown.count(b"'%s\\\\u202e;"), 10000)
        depth, part = 16, "\u202e" + "y" * 4090
        layers = 'layer l0(x: [B, S, 4]) -> [B, S, 4] = linear(x, 4, name = "w")\n'
        layers += "".join(f'layer l{i}(x: [B, S, 4]) -> [B, S, 4] = l{i - 1}(x, name = "{part}")\n' for i in range(1, depth + 1))
        self.compile(f"ulyc 1\nfree B, S\ndtype f32\n{layers}model m(x: [B, S, 4]) -> [B, S, 4] = l{depth}(x)\n")
        shown = self.run_one("ulyc", "inspect", "m.so")
        self.check_shown(shown)
        self.assertEqual(shown.count(b"\\u{202e}" + b"y" * 4090 + b"."), depth)

    def test_names_of_files(self):
        want = self.compile(SPEC % ("w", "b"))
        for name in "it's.spec", "a b.spec", "%s%n.spec", "new\nline.spec", "-o.spec", "\x1b[31m.spec", "q\"uote.spec", "\u202e.spec", "$(x).spec":
            with self.subTest(name=name):
                spec, out = "./" + name, "./" + name + ".so"
                got = self.compile(SPEC % ("w", "b"), spec, out)
                self.assertEqual([s[2] for s in sections(got) if s[0].startswith(".text")], [s[2] for s in sections(want) if s[0].startswith(".text")])
                self.check_shown(self.run_one("ulyc", "inspect", out))
                with open(os.path.join(self.folder, name), "w") as f:
                    f.write("ulyc 1\nlayer l(x: f32[4]) -> [4] = y\n")
                self.check_shown(self.run_one("ulyc", "check", spec, code=1))
                self.check_shown(self.run_one("ulyc", "check", spec + "\x1b[2J", code=74))

    # What a weights file says is not ours either.
    def test_weights(self):
        self.compile(SPEC % ("w", "b"))
        names = {"w": [4, 4], "b": [4], "\x1b]0;title\x07\n\u202ex": [1]}
        header, at = {}, 0
        for name, dims in names.items():
            n = 4 * dims[0] * (dims[1] if len(dims) > 1 else 1)
            header[name] = {"dtype": "F32", "shape": dims, "data_offsets": [at, at + n]}
            at += n
        text = json.dumps(header).encode()
        with open(os.path.join(self.folder, "w.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + bytes(at))
        run = ["ulyrun", "m.so", "--at", "B=1,S=2", "--input", "x=rand:seed=1", "--weights", "w.safetensors"]
        self.check_shown(self.run_one(*run))
        shown = self.run_one(*run, "--strict-weights", code=1)
        self.check_shown(shown)
        self.assertIn(rb"\x1b]0;title\x07", shown)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1)
