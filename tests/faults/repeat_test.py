"""The same spec gives the same file, whatever is around: `repeat_test.py BIN`. At least fifty builds over folders, environment, locale, time zone, permissions, address layout, cores and load."""
import concurrent.futures
import hashlib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile

ULYC = os.path.join(os.path.abspath(sys.argv[1]), "ulyc")
BUILDS = {"quick": 50, "long": 400}.get(os.environ.get("ULY_TEST_MODE"), 60)
SPEC = 'ulyc 1\nconst D = 8\nfree B, S\ngrid sp(S)\ndtype f32\nmodel m(x: [B, S, D]) -> [B, S, D] = softmax(linear(x, D, name = "l", bias = true))\n'
CHOICES = {
    "env": [{}, {"HOME": "/nonexistent"}, {"LC_ALL": "C", "LANG": "C"}, {"LC_ALL": "tr_TR.UTF-8"}, {"LC_ALL": "C.UTF-8"}, {"TZ": "Asia/Kathmandu"}, {"FILL": "x" * 100000},
            {"MALLOC_PERTURB_": "165"}, {"MALLOC_ARENA_MAX": "1"}, {"LD_BIND_NOW": "1"}, {"TERM": "dumb", "COLUMNS": "20"}, {"SOURCE_DATE_EPOCH": "1"}, {"USER": "nobody"}],
    "umask": [0o022, 0o077, 0o000],
    "before": [[], ["setarch", "-R"], ["nice", "-n", "5"], ["taskset", "-c", "0"]],
    "depth": [0, 1, 30],
    "path": ["m.spec", "./m.spec", "absolute"],
}


def build(folder, number, pick):
    choice = {key: values[number] if number < len(values) else pick.choice(values) for key, values in CHOICES.items()}
    place = os.path.join(folder, str(number), *["d"] * choice["depth"])
    os.makedirs(place)
    with open(os.path.join(place, "m.spec"), "w") as f:
        f.write(SPEC)
    spec = os.path.join(place, "m.spec") if choice["path"] == "absolute" else choice["path"]
    p = subprocess.run(choice["before"] + [ULYC, spec, "-o", "out.so"], cwd=place, env=dict(os.environ, **choice["env"]), preexec_fn=lambda: os.umask(choice["umask"]),
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode:
        return choice, f"exit {p.returncode}: {p.stdout.decode(errors='replace')}"
    with open(os.path.join(place, "out.so"), "rb") as f:
        return choice, hashlib.sha256(f.read()).hexdigest()


def main():
    seed = random.randrange(1 << 30)
    folder = tempfile.mkdtemp(prefix="uly-repeat-")
    for key in CHOICES:  # what this machine has
        CHOICES[key] = [c for c in CHOICES[key] if key != "before" or not c or shutil.which(c[0])]
    pick = random.Random(seed)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda i: build(folder, i, random.Random(pick.random())), range(BUILDS)))
    shutil.rmtree(folder)
    first = results[0][1]
    different = [(choice, result) for choice, result in results if result != first]
    print(f"seed {seed}: {len(results)} builds, {len(different)} differ")
    for choice, result in itertools.islice(different, 5):
        print(choice, result)
    return bool(different) or len(first) != 64


sys.exit(main())
