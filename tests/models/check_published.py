#!/usr/bin/env python3
"""specs/ at the sizes of published models: each is what `ulyc import` makes of the published config.json, is compiled, and takes as long with all its layers as with two.

usage: check_published.py ROOT BIN [--write]    --write: put what is printed into specs/
"""
import pathlib
import resource
import subprocess
import sys
import tempfile

# Files whose names of parameters lack the first word.
OPTIONS = {"gpt2": ["--prefix", ""], "bloom": ["--prefix", ""]}
LATER = ["mixtral"]
LEVEL = "--march=x86-64-v3"  # one CPU level: half the time
GROWTH = ["gemma2"]  # models whose compile time is compared with that of two layers


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def seconds(ulyc, spec, output, *options):
    """Of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = run(ulyc, spec, "-o", output, *options, LEVEL)
    assert done.returncode == 0, done.stderr
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def check_later(ulyc, config, spec):
    for done in run(ulyc, "import", str(config)), run(ulyc, spec):
        if done.returncode != 1 or "comes with a later version of the language" not in done.stderr:
            yield f"exit code {done.returncode}\n{done.stderr}"


def check(ulyc, config, spec, scratch, write):
    name, model = config.stem, f"{scratch}/{config.stem}.so"
    done = run(ulyc, "import", str(config), *OPTIONS.get(name, []))
    if done.returncode:
        yield done.stderr
        return
    if write:
        spec.write_text(done.stdout)
    if done.stdout != spec.read_text():
        yield "it is imported as\n" + done.stdout
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = run(ulyc, str(spec), "-o", model, LEVEL)
    all_layers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if done.returncode:
        yield done.stderr
    elif name in GROWTH:
        few = seconds(ulyc, str(spec), model, "-D", "L=2")
        if all_layers > 1.5 * few + 0.3:
            yield f"{all_layers:.2f} s to compile, {few:.2f} s with two layers"


def main():
    root, ulyc, write = pathlib.Path(sys.argv[1]), f"{sys.argv[2]}/ulyc", "--write" in sys.argv
    configs = sorted((root / "tests/models/published").glob("*.json"))
    problems = 0
    with tempfile.TemporaryDirectory() as scratch:
        for config in configs:
            spec = root / "specs" / f"{config.stem}.spec"
            found = check_later(ulyc, config, str(spec)) if config.stem in LATER else check(ulyc, config, spec, scratch, write)
            for problem in found:
                problems += 1
                print(f"{config.stem}: {problem}")
    print(f"{len(configs)} models, {problems} problems")
    return 1 if problems or len(configs) < 10 else 0


sys.exit(main())
