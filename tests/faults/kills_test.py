"""ulyc is killed at any moment: `kills_test.py BIN`. The output is the old file or the new one, whole, and nothing is left beside it."""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ULYC = os.path.join(os.path.abspath(sys.argv[1]), "ulyc")
TRIALS = {"quick": 12, "long": 500}.get(os.environ.get("ULY_TEST_MODE"), 50)
SPEC = 'ulyc 1\nconst D = 4\nfree B, S\ngrid sp(S)\ndtype f32\nmodel m(x: [B, S, D]) -> [B, S, D] = linear(x, D, name = "l")\n'


def read(path):
    with open(path, "rb") as f:
        return f.read()


def main():
    folder = tempfile.mkdtemp(prefix="uly-kills-")
    os.chdir(folder)
    with open("m.spec", "w") as f:
        f.write(SPEC)
    versions = []
    for d in "4", "8":
        begin = time.monotonic()
        subprocess.run([ULYC, "m.spec", "-D", "D=" + d, "-o", "out.so"], check=True)
        took = time.monotonic() - begin
        versions.append(read("out.so"))
    assert versions[0] != versions[1]
    seed = random.randrange(1 << 30)
    print(f"seed {seed}, a compilation takes {took:.3f} s")
    pick, seen, killed = random.Random(seed), [0, 0], 0
    for trial in range(TRIALS):
        fresh = trial % 3 == 0
        if fresh:
            os.unlink("out.so")
        p = subprocess.Popen([ULYC, "m.spec", "-D", "D=" + "48"[trial % 2], "-o", "out.so"], stderr=subprocess.DEVNULL)
        # Every second one when the file is about to be written.
        time.sleep(took * (pick.uniform(0, 1.1) if trial % 2 else pick.uniform(0.8, 1.05)))
        p.send_signal(signal.SIGKILL)
        in_time = p.wait() == -signal.SIGKILL
        killed += in_time
        took *= 1.03 if in_time else 0.9  # the machine has become slower, or faster
        left = set(os.listdir(".")) - {"m.spec", "out.so"}
        assert not left, f"trial {trial}: {left} is left"
        if not os.path.exists("out.so"):
            assert fresh, f"trial {trial}: the old file is gone"
            subprocess.run([ULYC, "m.spec", "-D", "D=" + "48"[trial % 2], "-o", "out.so"], check=True)
            continue
        held = read("out.so")
        assert held in versions, f"trial {trial}: neither the old file nor the new one, {len(held)} bytes"
        seen[versions.index(held)] += 1
    os.chdir("/")
    shutil.rmtree(folder)
    print(f"{TRIALS} trials, {killed} killed in time, files seen {seen}")
    assert killed >= TRIALS // 4


main()
