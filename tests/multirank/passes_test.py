"""ulyrun --check in one pass and in many, over entries, runs and ranks of every kind, with a right model and one that differs in an early or a late operation: `passes_test.py BIN [MPIRUN]`.
What is compared, and what is named, depends on none of them. Ranks may hold a model that was compiled from a copy of the spec under another name."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

BIN = pathlib.Path(sys.argv[1]).resolve()
MPIRUN = sys.argv[2] if len(sys.argv) > 2 else None
SPEC = """ulyc 1
const D = 16, H = 4
free B, S
grid sp(S), dp(B)
layer block(x: [B, S, D]) -> [B, S, D] {
  h = heads(rmsnorm(x, name = "n"), H)
  return x + linear(merge(attention(rope(h, theta = 100), h, h, mask = causal)), D, name = "o")
}
model whole(x: [B, S, D]) -> (y: [B, S, D], m: [B, D]) {
  y = 1.0 * x
  repeat 3 as i { y = block(y, name = "layers.{i}") }
  return y, 2.0 * mean(y, dim = 1)
}
model other(x: [B, S, D], i: i32[B, S]) -> [B, S, D] = x * 2.0 + (1.5 * param("table", [50, D]))[i]
"""
FAULTS = {"early": ("1.0 * x", "1.01 * x"), "late": ("2.0 * mean", "2.01 * mean"), "wrong": ("x * 2.0", "x * 2.01")}
ENTRIES = {"whole": [], "other": ["--input", "i=rand:seed=3"]}
HOWS = [["--ranks", "3", "--repeat", "3"], ["--grid", "sp=2,dp=3"], ["--procs", "2", "--repeat", "2"]]
STORES = ["1073741824", "9000", "1"]  # bytes: one pass, some, one a value


def call(*args, code=0, before=(), **env):
    for _ in range(3):  # MPICH's launcher may die of SIGPIPE itself, as in ulyrun_test.py
        done = subprocess.run([*before, *args], capture_output=True, text=True, timeout=60, env=dict(os.environ, UCX_MEM_MMAP_HOOK_MODE="none", ASAN_OPTIONS="detect_leaks=0", **env))
        if not before or done.returncode != -signal.SIGPIPE:
            break
    text = done.stdout + done.stderr
    assert done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}\n{text}"
    return text


def compiled(name, text, *options):
    pathlib.Path(f"{name}.spec").write_text(text)
    call(BIN / "ulyc", *options, f"{name}.spec", "-o", f"{name}.so")
    return f"{name}.so"


def checked(model, entry, how, store, code, before=()):
    args = ["--entry", entry, "--at", "B=3,S=13", "--weights", "rand:seed=1", "--input", "x=rand:seed=2", *ENTRIES[entry], "--check", "reference.so"]
    return call(BIN / "ulyrun", model, *args, *how, code=code, before=before, ULYRT_CHECK_BYTES=store)


def ways():
    """How it runs, and in how much memory: all of that on one rank."""
    for store in STORES:
        yield [], [], store
    for how in HOWS:
        yield how, [], STORES[1]
    if MPIRUN:
        yield ["--repeat", "2"], [MPIRUN, "-n", "3"], STORES[1]
        yield ["--grid", "sp=1,dp=2"], [MPIRUN, "-n", "2"], STORES[0]


def check_right():
    """The same operations and values, the same error, whatever holds them; several passes where they do not fit."""
    n = 0
    for entry in ENTRIES:
        reports, passes = set(), []
        for how, before, store in ways():
            found = re.findall(r"^check: (.*?)(?:; in (\d+) passes)?$", checked("right.so", entry, how, store, 0, before), re.M)
            assert len(found) == 1, f"{entry} {how} {store}: {found}"
            reports.add(found[0][0])
            passes.append((store, int(found[0][1] or 1)))
            n += 1
        assert len(reports) == 1, f"{entry}: {reports}"
        values = int(re.search(r"(\d+) values as in reference.so", reports.pop())[1])
        for store, count in passes:
            assert count == 1 if store == STORES[0] else 1 < count <= values, f"{entry}: {count} passes for {values} values in {store} bytes"
    return n


def check_wrong():
    n = 0
    for name, (entry, place) in {"early": ("whole", "in map at reference.spec:10:7 "), "late": ("whole", "in map at reference.spec:12:13 "), "wrong": ("other", "in map at reference.spec:14:56 ")}.items():
        for how, before, store in ways():
            out = checked(f"{name}.so", entry, how, store, 3, before)
            assert out.count("differs first") == 1 and f"differs first {place}" in out, f"{name} {how} {store}: no {place}\n{out}"
            n += 1
    return n


def check_names():
    """What ranks compare is what the program says, not what its file is called."""
    def program(model):
        return re.search(r"program ([0-9a-f]+),", call(BIN / "ulyc", "inspect", model))[1]

    other = compiled("a_copy_of_it", SPEC)
    changed = compiled("changed", SPEC.replace("theta = 100", "theta = 101"))
    assert program(other) == program("right.so") != program(changed)
    args = ["--entry", "other", "--at", "B=1,S=5", "--weights", "rand:seed=1", "--input", "x=rand:seed=2", "--input", "i=rand:seed=3"]
    if MPIRUN:
        call(*args, before=[MPIRUN, "-n", "1", BIN / "ulyrun", other, *args, ":", "-n", "1", BIN / "ulyrun", "right.so"])
        out = call(*args, code=3, before=[MPIRUN, "-n", "1", BIN / "ulyrun", changed, *args, ":", "-n", "1", BIN / "ulyrun", "right.so"])
        assert "ranks 0 and 1 run different models" in out, out


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        compiled("right", SPEC)
        compiled("reference", SPEC, "--target=reference")
        for name, (old, new) in FAULTS.items():
            assert SPEC.count(old) == 1
            compiled(name, SPEC.replace(old, new))
        n = check_right() + check_wrong()
        check_names()
        os.chdir("/")
    print(f"{n} comparisons alike")


main()
