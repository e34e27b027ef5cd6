"""Compiles the specs of this folder and compares every entry, on several numbers of ranks, with the float64 reference, value by value where
sizes are the first, and their bits with one rank's, and with those of the program without fusion (-O0). On several ranks memory holds NaN until it is written. With --grid the batch is split too: dp(B) is added to the grids of specs that have
none, behind sp and before it. Specs that say `dtype f32` run with bf16 too, some with f16, there and in casts; then the error may be twice that of a run that rounds every
value, and two roundings of the largest one.
Usage: check_layers.py BIN [--grid] [SPEC…]"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

SIZES = [{"B": 2, "S": 13, "T": 17}, {"B": 1, "S": 3, "T": 5}, {"B": 3, "S": 40, "T": 33}]
RANKS = [["--ranks", str(n)] for n in (1, 2, 3, 5)]
GRIDS = [["--grid", "sp=2,dp=3"], ["--grid", "sp=1,dp=4"], ["--grid", "sp=3,dp=2"]]
# Relative error of one rounding, as in runtime/base/dtype.def.
TOLERANCE = {"f32": 6.0e-8, "bf16": 3.9e-3, "f16": 4.9e-4}
F16_SPECS = "many", "masks", "rotations", "rows", "losses"
# Code for the best CPU level will do where another test has others.
BEST = "--march=x86-64-v4,sapphirerapids" if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text() else "--march=x86-64-v3"
if os.environ.get("ULY_TEST_MODE") == "quick":
    SIZES, RANKS = SIZES[:1], [RANKS[0], RANKS[2]]


def call(*args, poison=False):
    environment = dict(os.environ, ULYRT_POISON="1") if poison else None
    run = subprocess.run([str(a) for a in args], capture_output=True, text=True, env=environment)
    if run.returncode:
        raise RuntimeError(f"{' '.join(str(a) for a in args)}\nexit code {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout


def run_entry(tools, model, folder, line, sizes, ranks, dtype, checked):
    words = line.split()
    name, files, bounds = words[0], folder / words[0], {}
    args = ["--rtol", "2e-5", "--atol", "2e-5"] if dtype == "f32" else ["--rtol", "0", "--atol", "1e30"]
    for word in words[1:]:
        kind, file = ("--input", "inputs") if word[0] == "<" else ("--expect", "expected")
        tensor, *errors = word[1:].split(":")
        args += [kind, f"{tensor}=@{files}.{file}.safetensors:{tensor}"]
        if errors:
            bounds[tensor] = 2 * float(errors[0]) + 2 * TOLERANCE[dtype] * float(errors[1])
    if checked:
        args += ["--check", folder / "reference.so"]
    out = call(tools / "ulyrun", model, "--entry", name, *ranks, "--at", ",".join(f"{k}={v}" for k, v in sizes.items()), "--weights", f"{files}.weights.safetensors", *args, poison=ranks != RANKS[0])
    for tensor, error in re.findall(r"^(\w+) as expected: largest difference (\S+),", out, re.M):
        if tensor in bounds and not float(error) <= bounds[tensor]:
            raise RuntimeError(f"{tensor}: error {error}, bound {bounds[tensor]}, in {line}")
    return re.findall(r"hash ([0-9a-f]+)", out)


def plant(folder, entry, spec):
    """NaN in the tensors that the spec's `padded:` and `nan:` lines name."""
    for kind, names in re.findall(rf"^# (padded|nan): {entry}\b(.*)$", spec.read_text(), re.M):
        files = {f: Archive(folder / f"{entry}.{f}.safetensors") for f in ("inputs", "expected")}
        for name in names.split():
            file = next(f for f in files.values() if name in f.tensors)
            rows = range(file.rows(name))
            if kind == "padded":
                valid = files["inputs"].bytes_of("valid")
                rows = [r for r in rows if not valid[r]]
            file.fill(name, rows)
        for file in files.values():
            file.save()


class Archive:
    """A safetensors file whose floats can be overwritten row by row, (b, s) being a row."""

    def __init__(self, path):
        self.path, self.data = path, bytearray(path.read_bytes())
        size = struct.unpack_from("<Q", self.data)[0]
        self.start, self.tensors = 8 + size, json.loads(self.data[8 : 8 + size])

    def bytes_of(self, name):
        begin, end = self.tensors[name]["data_offsets"]
        return memoryview(self.data)[self.start + begin : self.start + end]

    def rows(self, name):
        return self.tensors[name]["shape"][0] * self.tensors[name]["shape"][1]

    def fill(self, name, rows):
        data = self.bytes_of(name)
        width = len(data) // self.rows(name)
        for row in rows:
            data[row * width : (row + 1) * width] = b"\xff" * width

    def save(self):
        self.path.write_bytes(self.data)


def check_refusals(tools, spec, model):
    """Lines `# refused: ENTRY at SIZES: MESSAGE` of the spec, on one and on three ranks."""
    failures, lines = [], re.findall(r"^# refused: (\w+) at (\S+): (.*)$", spec.read_text(), re.M)
    for entry, sizes, message in lines:
        for ranks in "1", "3":
            run = subprocess.run([tools / "ulyrun", model, "--entry", entry, "--at", sizes, "--ranks", ranks, "--weights", "rand:seed=1", "--input", "x=rand:seed=1"],
                                 capture_output=True, text=True)
            if run.returncode == 0 or message not in run.stderr:
                failures.append(f"{spec.name} {entry} at {sizes}, {ranks} ranks: exit code {run.returncode}, {run.stderr}")
    return 2 * len(lines), failures


def with_batch(spec, folder, added):
    """The spec with its batch split over an axis of its own; None where it has none, or such an axis already."""
    text, n = re.subn(r"^grid +(sp\([^)]*\))$", added, spec.read_text(), flags=re.M)
    if not n or not re.search(r"^free .*\bB\b", text, re.M):
        return None
    other = folder / spec.name
    other.write_text(text)
    return other


def dtype_of(spec):
    found = re.search(r"^dtype (\w+)$", spec.read_text(), re.M)
    return found[1] if found else "f32"


def with_dtype(spec, folder, dtype):
    other = folder / f"{spec.stem}.{dtype}.spec"
    other.write_text(re.sub(r"^dtype f32$|, f32\)", lambda m: m[0].replace("f32", dtype), spec.read_text(), flags=re.M))
    return other


def check_size(tools, spec, folder, seed, sizes, runs):
    """Every entry: runs are of a model on some ranks. Returns how many runs that were, and what failed."""
    n, failures, dtype = 0, [], dtype_of(spec)
    naive, free = ["--naive"] if dtype != "f32" else [], re.search(r"^free +(.*)$", spec.read_text(), re.M)
    known = {k: v for k, v in sizes.items() if free and k in free[1].split(", ")}
    for line in call(tools / "reference_case", spec, folder, seed, *naive, *(f"{k}={v}" for k, v in sizes.items())).splitlines():
        plant(folder, line.split()[0], spec)
        one = None
        for model, ranks, checked in runs:
            n += 1
            try:
                hashes = run_entry(tools, folder / model, folder, line, known, ranks, dtype, checked)
                one = one or hashes
                if hashes != one or len(hashes) != line.count(" >"):
                    raise RuntimeError(f"other bits than on one rank: {hashes}, {one}")
            except RuntimeError as error:
                failures.append(f"{spec.name} {line.split()[0]}, {sizes}, {model}, {' '.join(ranks)}: {error}")
    return n, failures


def check(tools, spec, sizes, ranks, unfused_ranks, *options):
    """At the first of the sizes also without fusion. |options|: of the compiler."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        call(tools / "ulyc", *options, spec, "-o", folder / "model.so")
        if unfused_ranks:
            call(tools / "ulyc", *options, "-O0", spec, "-o", folder / "unfused.so")
        call(tools / "ulyc", "--target=reference", spec, "-o", folder / "reference.so")
        n, failures = check_refusals(tools, spec, folder / "model.so")
        for seed, size in enumerate(sizes):
            runs = [("model.so", r, seed == 0 and r in ranks[0:3:2]) for r in ranks] + [("unfused.so", r, r is unfused_ranks[-1]) for r in unfused_ranks if seed == 0]
            more, failed = check_size(tools, spec, folder, seed, size, runs)
            n, failures = n + more, failures + failed
    return n, failures


def check_with_batch(tools, spec):
    """In the one order of axes with empty shares of the batch, in the other with uneven ones."""
    n, failures = 0, []
    for added, i, unfused in (r"grid \1, dp(B)", 0, [GRIDS[0]]), (r"grid dp(B), \1", 2, []):
        with tempfile.TemporaryDirectory() as name:
            other = with_batch(spec, pathlib.Path(name), added)
            if other and i < len(SIZES):
                more, failed = check(tools, other, [SIZES[i]], [RANKS[0], GRIDS[i]], unfused, BEST)
                n, failures = n + more, failures + failed
    return n, failures


def check_with_halves(tools, spec):
    """bf16 with code of the best level, f16 with that of the other."""
    n, failures = 0, []
    variants = ["bf16"] + ["f16"] * (spec.stem in F16_SPECS) if re.search("^dtype f32$", spec.read_text(), re.M) else []
    for dtype in variants:
        with tempfile.TemporaryDirectory() as name:
            other, level = with_dtype(spec, pathlib.Path(name), dtype), BEST if dtype == "bf16" else "--march=x86-64-v3"
            more, failed = check(tools, other, SIZES[:1], RANKS[:3:2], RANKS[:3:2] if dtype == "bf16" else [], level)
            n, failures = n + more, failures + failed
    return n, failures


def own_grids(spec):
    """GRIDS and those of the spec's line `# grids: sp=2,kp=3 …`."""
    return GRIDS + [["--grid", grid] for line in re.findall(r"^# grids: (.*)$", spec.read_text(), re.M) for grid in line.split()]


def main():
    arguments = sys.argv[2:]
    grid = "--grid" in arguments
    tools = pathlib.Path(sys.argv[1])
    specs = [pathlib.Path(s) for s in arguments if s != "--grid"] or sorted(pathlib.Path(__file__).parent.glob("*.spec"))
    failed = 0
    for spec in specs:
        ranks = [RANKS[0], *own_grids(spec)] if "dp(" in spec.read_text() else RANKS
        n, failures = check_with_batch(tools, spec) if grid else check(tools, spec, SIZES, ranks, ranks[0:3:2])
        if not grid:
            more, others = check_with_halves(tools, spec)
            n, failures = n + more, failures + others
        if n:
            print(f"{spec.name}: {n - len(failures)} of {n} as the reference")
        for failure in failures:
            print(failure)
        failed += len(failures)
    return failed > 0


sys.exit(main())
