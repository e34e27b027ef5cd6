"""Specs with one to three tokens changed: `check_mutants.py ULYC MAKE_MUTANTS SPEC…`. Each is refused with exit 1 and a caret, in half a second and 128 MiB at most, and nothing is written;
or it is right, and compiles. Many mutants in the long mode: how far it is goes to standard error."""
import concurrent.futures
import glob
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

ULYC, MAKE = (os.path.abspath(p) for p in sys.argv[1:3])
SPECS = [os.path.abspath(p) for p in sys.argv[3:]]
COUNT, COMPILED = {"quick": (300, 2), "long": (20000, 120)}.get(os.environ.get("ULY_TEST_MODE"), (1200, 6))
CARET = re.compile(r":\d+:\d+: error: .*\n  .*\n  +\^~*$", re.M)
SANITIZED = "asan" in ULYC or "tsan" in ULYC


# Exit code, standard error, seconds of the processor, MiB.
def run(args):
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as pipe:
        p = subprocess.Popen([ULYC] + args, stdout=subprocess.DEVNULL, stderr=write_end)
        os.close(write_end)
        said = pipe.read().decode(errors="replace")
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = 0  # it is gone
    return os.waitstatus_to_exitcode(status), said, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def check(path):
    code, said, seconds, megabytes = run(["check", path])
    what = f"exit {code}, {seconds:.2f} s, {megabytes:.0f} MiB: {said[:600]}"
    if code not in (0, 1):
        return code, what, seconds, megabytes
    if code == 1 and not CARET.search(said):
        return code, "no caret: " + what, seconds, megabytes
    problem = "too much: " + what if not SANITIZED and (seconds > 0.5 or megabytes > 128) else None
    return code, problem, seconds, megabytes


def compiles(path):
    out = path + ".so"
    code, said, _, _ = run([path, "-o", out])
    if code == 0:
        ok = os.path.exists(out)
    else:
        ok = code == 1 and CARET.search(said) and not os.path.exists(out)
    if os.path.exists(out):
        os.unlink(out)
    return code, None if ok else f"compiling: exit {code}: {said[:600]}"


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seed = random.randrange(1 << 30)
    problems = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        subprocess.run([MAKE, folder, str(COUNT), str(seed)] + SPECS, check=True)
        paths = [os.path.join(folder, f"{i}.spec") for i in range(COUNT)]

        def report(path, problem):
            with open(path, encoding="utf-8", errors="replace") as f:
                problems.append(f"{SPECS[int(os.path.basename(path)[:-5]) % len(SPECS)]}: {problem}\n{f.read()}")
        right, wrong = [], []
        slowest, largest, began = (0, ""), (0, ""), time.monotonic()

        def progress(done, of, verb):
            if done % max(of // 10, 1) == 0:
                print(f"{time.monotonic() - began:.0f} s: {done} of {of} {verb}, {len(problems)} problems", file=sys.stderr, flush=True)
        for path, (code, problem, seconds, megabytes) in zip(paths, pool.map(check, paths)):
            (right if code == 0 else wrong).append(path)
            slowest, largest = max(slowest, (seconds, path)), max(largest, (megabytes, path))
            if problem:
                report(path, problem)
            progress(len(right) + len(wrong), COUNT, "checked")
        pick = random.Random(seed)
        some = pick.sample(right, min(len(right), COMPILED)) + pick.sample(wrong, min(len(wrong), COMPILED))
        compiled = 0
        for i, (path, (code, problem)) in enumerate(zip(some, pool.map(compiles, some)), 1):
            compiled += code == 0
            if problem or (path in wrong and code == 0):
                report(path, problem or "refused by check, but compiled")
            progress(i, len(some), "compiled")
        left = [p for p in glob.glob(folder + "/*") if not p.endswith(".spec")]
        if left:
            problems.append(f"left behind: {left}")
    print(f"seed {seed}: {COUNT} mutants, {len(wrong)} wrong, {len(right)} right, {compiled} of {len(some)} compiled, {len(problems)} problems")
    for (most, path), unit in ((slowest, "s"), (largest, "MiB")):
        print(f"at most {most:.3g} {unit} of {SPECS[int(os.path.basename(path)[:-5]) % len(SPECS)]}")
    print("\n".join(problems[:5]))
    return bool(problems) or len(wrong) < COUNT // 3 or not right


if __name__ == "__main__":
    sys.exit(main())
