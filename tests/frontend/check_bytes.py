"""What `ulyc check --at` says that the busiest rank sends is what `ulyrun` counts.
Usage: check_bytes.py SPECS ULYC ULYRUN FOLDER"""
import pathlib
import re
import subprocess
import sys

CASES = [  # spec, -D, sizes, inputs, ranks
    ("attention", [], "B=1,S=37", ["q", "k", "v"], [1, 2, 3, 5, 12, 40]),
    ("attention", ["H=6", "K=3", "Dh=8"], "B=2,S=10", ["q", "k", "v"], [2, 4, 7]),
    ("llama", ["L=2", "D=64", "F=64"], "B=2,S=33", ["tokens"], [1, 3, 4]),
    ("minilm", ["L=2", "V=100", "D=48", "F=64", "H=4"], "B=1,S=21", ["tokens"], [1, 2, 5]),
]


def main():
    specs, ulyc, ulyrun, folder = sys.argv[1:]
    problems = cases = 0
    for spec, defines, at, inputs, all_ranks in CASES:
        path, model = f"{specs}/{spec}.spec", f"{folder}/{spec}.so"
        flags = [f"-D{d}" for d in defines]
        subprocess.run([ulyc, path, "-o", model, *flags], check=True)
        for ranks in all_ranks:
            check = subprocess.run([ulyc, "check", path, *flags, "--at", f"{at},sp={ranks}"], check=True, capture_output=True, text=True).stdout
            line = re.search(r"sent by the busiest rank\s+(.*)", check).group(1)
            said = int(re.search(r"(\d+) B$", line).group(1))
            run = [ulyrun, model, "--at", at, "--ranks", str(ranks), "--weights", "rand:seed=1", "--stats"]
            for number, name in enumerate(inputs):
                run += ["--input", f"{name}=rand:seed={number}"]
            out = subprocess.run(run, check=True, capture_output=True, text=True)
            counted = max(int(n) for n in re.findall(r"sent (\d+) bytes", out.stdout + out.stderr))
            cases += 1
            if said != counted:
                problems += 1
                print(f"{spec} {defines} at {at} on {ranks} ranks: check says {said}, ulyrun counts {counted}")
        pathlib.Path(model).unlink()
    print(f"{cases} cases, {problems} differ")
    return bool(problems)


sys.exit(main())
