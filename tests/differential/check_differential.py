"""Random specs: float64 reference against the kernels on 1, 2, 3 and 5 ranks (or, where they split the batch too, on grids), whose bits must be equal, and equal to those of the program
without fusion (-O0). Memory holds NaN until it is written. A spec that fails is printed, shrunk. Usage: check_differential.py BIN [FIRST_SEED [SPECS]]; six entries a spec."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import make_specs
import shrink

SPECS = {"quick": 3, "long": 840}.get(os.environ.get("ULY_TEST_MODE", ""), 50)
RANKS = [1, 2, 3, 5]
GRIDS = {1: "sp=1", 2: "dp=2", 3: "sp=2,dp=3", 5: "sp=3,dp=2"}  # in their place
ROUNDING = 2e-6  # of the largest value, on top of what noise does in the reference


class Failure(Exception):
    """|kind|: refused, reference, values, ranks or fusion."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def call(kind, *args):
    run = subprocess.run([str(a) for a in args], capture_output=True, text=True, env=dict(os.environ, ULYRT_POISON="1"))
    if run.returncode:
        raise Failure(kind, f"{' '.join(str(a) for a in args)}\nexit code {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout


class Case:
    """An entry of a compiled spec, from the line that reference_case prints: e0 <x0 >o0=1e-6."""

    def __init__(self, tools, folder, line, grid):
        words = line.split()
        self.grid = grid
        self.tools, self.folder, self.name = tools, folder, words[0]
        self.inputs = [w[1:] for w in words if w[0] == "<"]
        self.results = {w[1:].split("=")[0]: float(w.split("=")[1]) for w in words if w[0] == ">"}

    def run(self, kind, model, ranks, *more):
        files = self.folder / self.name
        where = ["--grid", GRIDS[ranks]] if self.grid else ["--ranks", ranks]
        args = [self.tools / "ulyrun", self.folder / model, "--entry", self.name, *where, "--threads", 1, "--weights", f"{files}.weights.safetensors", *more]
        for x in self.inputs:
            args += ["--input", f"{x}=@{files}.inputs.safetensors:{x}"]
        return call(kind, *args)

    def values(self):
        """Compares with the reference."""
        args = ["--rtol", 0, "--atol", 1e30]
        for y in self.results:
            args += ["--expect", f"{y}=@{self.folder / self.name}.expected.safetensors:{y}"]
        out = self.run("values", "fused.so", 1, *args)
        for y, error in self.results.items():
            difference, share = (float(x) for x in re.search(rf"^{y} as expected: largest difference (\S+), of the largest value (\S+)$", out, re.M).groups())
            if difference > error and share > ROUNDING:
                raise Failure("values", f"{y} differs by {difference:g}, {share:g} of the largest value; rounding makes at most {error:g}\n{self.place(y, 'fused.so', 1)}")
        return self.hashes(out)

    def hashes(self, out):
        return re.findall(r"^(\w+) .* hash ([0-9a-f]+)$", out, re.M)

    def same(self, kind, model, ranks, hashes):
        if self.hashes(self.run(kind, model, ranks)) != hashes:
            raise Failure(kind, f"other bits with {model} on {ranks} ranks\n" + "".join(self.place(y, model, ranks, base="fused.so") for y in self.results))

    def place(self, y, model, ranks, base=None):
        """Where the worst element of |y| is: against the reference, or |base| on one rank."""
        want = f"{self.folder / self.name}.expected.safetensors:{y}"
        if base:
            want = f"{self.folder}/base.safetensors"
            self.run("ranks", base, 1, "--output", f"{y}=@{want}")
        try:
            self.run("", model, ranks, "--rtol", 0, "--atol", 0, "--expect", f"{y}=@{want}")
        except Failure as failure:
            return str(failure).splitlines()[-1] + "\n"
        return ""


def check_text(tools, text, spec, only=None):
    """Failures of a spec's text, by entry."""
    failures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "m.spec").write_text(text)
        try:
            for level, model in ("-O2", "fused.so"), ("-O0", "unfused.so"):
                call("refused", tools / "ulyc", level, f"--march={spec.level}", folder / "m.spec", "-o", folder / model)
            lines = call("reference", tools / "reference_case", folder / "m.spec", folder, spec.seed, *([only] if only else []), *spec.at(), "--errors").splitlines()
        except Failure as failure:
            return {"": failure}
        for i, line in enumerate(lines):
            case = Case(tools, folder, line, "dp(" in text)
            try:
                hashes = case.values()
                for ranks in RANKS[1:]:
                    case.same("ranks", "fused.so", ranks, hashes)
                for ranks in (1, RANKS[1 + (spec.seed + i) % 3]):
                    case.same("fusion", "unfused.so", ranks, hashes)
            except Failure as failure:
                failures[case.name] = failure
    return failures


def check(tools, seed):
    """What is to be printed about a seed: nothing where all is well."""
    spec = make_specs.Spec(seed)
    report = []
    for name, failure in check_text(tools, spec.text(), spec).items():
        report.append(f"seed {seed}, {' '.join(spec.at())}, {spec.level}, {name}: {failure.kind}: {failure}")

        def fails(text):
            return any(f.kind == failure.kind for f in check_text(tools, text, spec, name or None).values())

        if os.environ.get("ULY_TEST_SHRINK", "1") == "1":
            report.append(shrink.shrink(spec.text([e for e in spec.entries if e.name == name] if name else None), fails))
    return report


def main():
    tools = pathlib.Path(sys.argv[1]).resolve()
    first = int(sys.argv[2]) if len(sys.argv) > 2 else int(os.environ.get("ULY_TEST_SEED", "1"))
    seeds = range(first, first + (int(sys.argv[3]) if len(sys.argv) > 3 else SPECS))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for report in pool.map(lambda seed: check(tools, seed), seeds):
            failed += bool(report)
            print("\n".join(report), end="\n" if report else "", flush=True)
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {len(seeds) * make_specs.ENTRIES} entries of {len(seeds)} specs, {failed} specs failed")
    return failed > 0


sys.exit(main())
