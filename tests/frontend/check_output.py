"""The model file is the old one or the whole new one, whatever happens while it is written; and equal input gives equal bytes.
Usage: check_output.py SPECS ULYC FOLDER"""
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time


def run(*args, **kwargs):
    return subprocess.run(args, capture_output=True, text=True, **kwargs)


def main():
    specs, ulyc, base = (os.path.abspath(a) for a in sys.argv[1:])
    folder = pathlib.Path(base) / "output_test"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    spec, model = f"{specs}/attention.spec", folder / "attention.so"
    problems = []

    def expect(condition, what):
        if not condition:
            problems.append(what)

    def only(*names):
        expect(sorted(p.name for p in folder.iterdir()) == sorted(names), f"the folder holds {[p.name for p in folder.iterdir()]} instead of {names}")

    # Equal bytes, also from another folder and under another name of the output.
    expect(run(ulyc, spec, cwd=folder).returncode == 0, "compiles to the current folder")
    only("attention.so")
    new = model.read_bytes()
    other = folder / "other.so"
    expect(run(ulyc, os.path.relpath(spec, "/"), "-o", str(other), cwd="/").returncode == 0, "compiles from another folder")
    expect(other.read_bytes() == new, "equal input gives equal bytes")
    other.unlink()

    # A file that cannot be written.
    got = run(ulyc, spec, "-o", str(folder / "none" / "x.so"))
    expect(got.returncode == 74 and "x.so" in got.stderr and "No such file" in got.stderr, f"a missing folder: {got.returncode} {got.stderr}")
    got = run(ulyc, spec, "-o", str(folder))
    expect(got.returncode == 74 and "directory" in got.stderr, f"a folder: {got.returncode} {got.stderr}")
    got = run(ulyc, spec, "-o", "/dev/full")
    expect(got.returncode == 74 and "No space left" in got.stderr, f"a full device: {got.returncode} {got.stderr}")

    # A limit in the middle of the file.
    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(new) // 2, len(new) // 2))

    model.write_bytes(b"old")
    got = run(ulyc, spec, "-o", str(model), preexec_fn=small)
    expect(got.returncode != 0 and "File too large" in got.stderr, f"a file size limit: {got.returncode} {got.stderr}")
    expect(model.read_bytes() == b"old", "a file size limit leaves the old file")
    only("attention.so")

    # A wrong spec leaves the old file.
    bad = folder / "bad.spec"
    bad.write_text("ulyc 1\nlayer l(x: f32[4]) -> [5] = x\n")
    expect(run(ulyc, str(bad), "-o", str(model)).returncode == 1, "a wrong spec exits with 1")
    expect(model.read_bytes() == b"old", "a wrong spec leaves the old file")
    bad.unlink()

    # Killed at any moment.
    start = time.monotonic()
    run(ulyc, spec, "-o", str(model))
    whole = time.monotonic() - start
    expect(model.read_bytes() == new, "an old file is replaced")
    rng, killed = random.Random(1), 0
    for _ in range(15):
        model.write_bytes(b"old")
        child = subprocess.Popen([ulyc, spec, "-o", str(model)], stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 1.3 * whole)
        child.kill()
        killed += child.wait() != 0
        expect(model.read_bytes() in (b"old", new), "killed: the old file or the whole new one")
    print(f"killed {killed} of 15 compilations")
    only("attention.so")
    shutil.rmtree(folder)
    for problem in problems:
        print("FAILED:", problem)
    return bool(problems)


sys.exit(main())
