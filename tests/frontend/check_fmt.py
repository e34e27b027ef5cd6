"""`ulyc fmt` on every spec of the tree: laid out twice it is the same, what it means does not change, and how the blanks stood before makes no difference.
Specs are laid out that way, except those of tests/frontend and tests/fuzz, which hold what users may write.
Usage: check_fmt.py ROOT ULYC FOLDER    FOLDER: for a file"""
import pathlib
import random
import re
import subprocess
import sys

AS_WRITTEN = ("tests/frontend/", "tests/fuzz/")
WORDS = re.compile(r'"[^"\n]*"|#[^\n]*|\n|[ \t\r]+|\*\*|//|->|<=|>=|==|!=|\.\.\.|\w+(?:\.\d+)?(?:(?<=[0-9][eE])[-+]\d+)?|.')


def run(ulyc, *arguments, text=None):
    return subprocess.run([ulyc, *arguments], input=text, capture_output=True, text=True)


def meaning(ulyc, path):
    done = run(ulyc, "check", "--types", str(path))
    return re.sub(r"# line \d+", "", done.stdout) if done.returncode == 0 else None


def mangle(text, generator):
    """Other blanks between the same words, and more empty lines where there are some."""
    out = []
    for word in WORDS.findall(text):
        if not word.strip(" \t\r"):
            out.append(" " * generator.randint(1, 4) if "\t" not in word else "\t")
        elif word == "\n":
            out.append(" " * generator.randint(0, 3) + "\n" * (generator.randint(1, 3) if out and out[-1:] == ["\n"] else 1))
            if out[-1].strip("\n") == "":
                out[-1] = "\n" * len(out[-1])
        else:
            out.append((" " if generator.random() < 0.3 and not word.startswith("#") else "") + word)
    return "".join(out)


def main():
    root, ulyc = pathlib.Path(sys.argv[1]), sys.argv[2]
    generator = random.Random(5)
    problems, parsed, meant = [], 0, 0
    paths = sorted(p for folder in ("specs", "tests", "frontend", "examples") for p in (root / folder).rglob("*.spec"))
    for path in paths:
        name = str(path.relative_to(root))
        text = path.read_text(errors="replace")
        once = run(ulyc, "fmt", "-", text=text)
        if once.returncode:
            if not name.startswith(AS_WRITTEN):
                problems.append(f"{name}: {once.stderr}")
            continue
        parsed += 1
        if run(ulyc, "fmt", "-", text=once.stdout).stdout != once.stdout:
            problems.append(f"{name}: laid out twice it is another text")
        if once.stdout != text and not name.startswith(AS_WRITTEN):
            problems.append(run(ulyc, "fmt", "--check", str(path)).stderr)
        for _ in range(3):
            other = mangle(text, generator)
            got = run(ulyc, "fmt", "-", text=other)
            if got.stdout != once.stdout:
                problems.append(f"{name}: with other blanks it is laid out differently\n{other}\n{got.stderr}")
                break
        before = meaning(ulyc, path)
        if before is None:
            continue
        meant += 1
        copy = pathlib.Path(sys.argv[3]) / "laid_out.spec"
        copy.write_text(once.stdout)
        if meaning(ulyc, copy) != before:
            problems.append(f"{name}: it means something else")
    for problem in problems:
        print(problem)
    print(f"{len(paths)} specs, {parsed} laid out, {meant} with a meaning, {len(problems)} problems")
    return bool(problems) or meant < 20


sys.exit(main())
