"""Installs into a folder, moves that, and uses what is there as someone would who never saw the build.
Usage: install_test.py CMAKE BUILD_DIR SOURCE_DIR CC [MPIRUN]"""
import glob
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD, SOURCE, CC = sys.argv[1:5]
MPIRUN = sys.argv[5] if len(sys.argv) > 5 else ""
QKV = [word for i, name in enumerate("qkv") for word in ("--input", f"{name}=rand:seed={i}")]


def run(*command, code=0, **environment):
    """With nothing but PATH in the environment, so that only what was installed can be found."""
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", **environment}
    done = subprocess.run([str(c) for c in command], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=FOLDER)
    if done.returncode != code:
        raise AssertionError(f"{command} ends with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + (done.stderr if environment.get("LD_DEBUG") else "")


def loaded(debug):
    """Shared libraries that LD_DEBUG=files reports."""
    return set(re.findall(r"calling init: (.+)", debug))


class Installed(unittest.TestCase):
    def own(self, debug):
        mine = {path for path in loaded(debug) if "/libuly" in path}
        self.assertEqual([path for path in mine if not os.path.realpath(path).startswith(str(PREFIX) + "/")], [])
        return {os.path.basename(path) for path in mine}

    def model(self):
        path = FOLDER / "attention.so"
        if not path.exists():
            run(PREFIX / "bin/ulyc", f"{SOURCE}/specs/attention.spec", "-o", path)
        return path

    def test_compiles_with_what_is_beside_it(self):
        debug = run(PREFIX / "bin/ulyc", f"{SOURCE}/specs/attention.spec", "-o", FOLDER / "first.so", LD_DEBUG="files")
        self.assertEqual(self.own(debug), {"libulyc_lower.so"})
        self.assertTrue(any("libMLIR" in path for path in loaded(debug)))
        self.assertIn("attn", run(PREFIX / "bin/ulyc", "inspect", FOLDER / "first.so"))

    def test_checks_without_mlir(self):
        debug = run(PREFIX / "bin/ulyc", "check", f"{SOURCE}/specs/attention.spec", LD_DEBUG="files")
        self.assertFalse(any("libMLIR" in path or "libLLVM" in path or "libuly" in path for path in loaded(debug)))

    def test_says_what_is_missing(self):
        library, aside = PREFIX / "lib/libulyc_lower.so", FOLDER / "aside.so"
        os.rename(library, aside)
        try:
            done = subprocess.run([PREFIX / "bin/ulyc", f"{SOURCE}/specs/attention.spec", "-o", FOLDER / "none.so"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 69)
            self.assertIn("cannot load libulyc_lower.so", done.stderr)
        finally:
            os.rename(aside, library)

    def test_runs_on_threads_processes_and_mpi(self):
        model = self.model()
        sizes = ["--at", "B=1,S=64", *QKV]
        out = run(PREFIX / "bin/ulyrun", model, *sizes, "--ranks", "4", LD_DEBUG="files")
        self.assertEqual(self.own(out), {"libulyrt.so.1"})
        digest = re.search(r"hash ([0-9a-f]{16})", out).group(1)
        self.assertIn(digest, run(PREFIX / "bin/ulyrun", model, *sizes, "--procs", "2"))
        if MPIRUN:
            out = run(MPIRUN, "-n", "2", PREFIX / "bin/ulyrun", model, *sizes, LD_DEBUG="files")
            self.assertEqual(self.own(out), {"libulyrt.so.1", "libulyrt_mpi.so"})
            self.assertIn(digest, out)

    def test_pkg_config(self):
        pc = glob.glob(f"{PREFIX}/lib*/**/pkgconfig", recursive=True)[0]
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "ulyrt", PKG_CONFIG_PATH=pc))
        self.assertTrue(all(os.path.realpath(f[2:]).startswith(str(PREFIX)) for f in flags if f[:2] in ("-I", "-L")))
        library = os.path.realpath(next(f[2:] for f in flags if f.startswith("-L")))
        run(CC, f"{SOURCE}/examples/embed.c", *flags, f"-Wl,-rpath,{library}", "-pthread", "-o", FOLDER / "embed")
        self.embedded(FOLDER / "embed")

    def test_find_package(self):
        run(CMAKE, "-S", f"{SOURCE}/examples", "-B", FOLDER / "example", f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DCMAKE_C_COMPILER={CC}")
        run(CMAKE, "--build", FOLDER / "example")
        self.embedded(FOLDER / "example/embed")

    def embedded(self, program):
        lines = run(program, self.model(), "B=1", "S=62").splitlines()
        self.assertEqual(sorted(line[: len("rank 0 of 4")] for line in lines), [f"rank {r} of 4" for r in range(4)])

    def test_manual_and_completion(self):
        for command in ("ulyc", "ulyrun"):
            page = (PREFIX / f"share/man/man1/{command}.1").read_text()
            self.assertIn(".TH", page)
            words = run(PREFIX / f"bin/{command}", "--help")
            option = re.search(r"--[a-z-]{4,}", words).group()
            completion = PREFIX / f"share/bash-completion/completions/{command}"
            self.assertIn(option, completion.read_text())
            self.assertIn(f" {command}\n", run("bash", "-c", f'. "{completion}"; complete -p {command}'))

    def test_documents(self):
        for name in ("LICENSE", "NOTICE", "README.md", "specs/SPEC.md", "specs/minilm.spec"):
            self.assertTrue((PREFIX / "share/doc/ulyc" / name).is_file(), name)

    def test_text_names_no_folder_of_the_build(self):
        text = [path for path in PREFIX.rglob("*") if path.is_file() and path.suffix in (".pc", ".cmake", ".1", ".h", "")]
        text = [path for path in text if not path.read_bytes().startswith(b"\x7fELF")]
        self.assertGreater(len(text), 5)
        for path in text:
            for folder in (SOURCE, BUILD, str(FOLDER / "first")):
                self.assertNotIn(folder.encode(), path.read_bytes(), path)


with tempfile.TemporaryDirectory() as name:
    FOLDER = pathlib.Path(os.path.realpath(name))
    subprocess.run([CMAKE, "--install", BUILD, "--prefix", str(FOLDER / "first")], check=True, stdout=subprocess.DEVNULL)
    PREFIX = FOLDER / "moved to here"  # a space, too
    shutil.move(FOLDER / "first", PREFIX)
    unittest.main(argv=sys.argv[:1])
