"""Runs every code block of README.md, in order, in an empty folder that looks like the project's root, and compares what it prints with the block behind it.
Usage: readme_test.py ROOT BUILD_DIR

A comment in front of a block says what is special about it:
  <!-- file: NAME -->     the block is a file, which later blocks use
  <!-- exit: N -->        its commands end with exit code N; standard error counts as output
  <!-- varies: times -->  numbers with a unit of time may differ
  <!-- varies: bits -->   hashes may differ, but those that are equal in the page must be equal; numbers with a point may differ by 1e-4 of their size
  <!-- suites -->         scripts/test: the page must show each suite; one of them is run
A ```sh block without a ```text block behind it prints nothing. A block of any other kind is an error: nothing in the page goes unchecked.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"((?:^<!--[^\n]*-->\n)*)^```(\w*)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[+-]?\d+)?(?![\w.])")
TIME = re.compile(r" *\b\d+(?:\.\d+)? *(?:ms|s)\b")
HASH = re.compile(r"\bhash [0-9a-f]{16}\b")
QUICK_SUITE = "dialect"


def folder_like_root(root, build, folder):
    for name in os.listdir(root):
        if name not in ("build", ".git"):
            (folder / name).symlink_to(root / name)
    (folder / "CMakeLists.txt").unlink()
    (folder / "build").mkdir()
    for name in os.listdir(build):
        (folder / "build" / name).symlink_to(build / name)
    venv = root / "build" / "venv"
    if venv.exists() and not (folder / "build" / "venv").exists():
        (folder / "build" / "venv").symlink_to(venv)


def run(command, folder):
    environment = dict(os.environ, ULY_PREPARED="1", LC_ALL="C.UTF-8", COLUMNS="80")
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def alike(want, got, varies, hashes):
    if "times" in varies:
        want, got = TIME.sub(" TIME", want), TIME.sub(" TIME", got)
    if "bits" not in varies:
        return want == got
    for a, b in zip(HASH.findall(want), HASH.findall(got)):
        if hashes.setdefault(a, b) != b:
            return False
    want, got = HASH.sub("HASH", want), HASH.sub("HASH", got)
    a, b = NUMBER.findall(want), NUMBER.findall(got)
    return NUMBER.sub("N", want) == NUMBER.sub("N", got) and all(x == y or "." in x and abs(float(x) - float(y)) <= 1e-4 * abs(float(x)) for x, y in zip(a, b))


def compare(want, got, varies):
    want, got, hashes = want.splitlines(), got.splitlines(), {}
    for i in range(max(len(want), len(got))):
        a, b = want[i] if i < len(want) else "(nothing)", got[i] if i < len(got) else "(nothing)"
        if not alike(a, b, varies, hashes):
            return f"line {i + 1} of the output\n  page:   {a}\n  really: {b}"
    return ""


def check_suites(want, folder):
    code, out = run("scripts/test --list", folder)
    known = {line.split()[0] for line in out.splitlines()}
    shown = {line.split()[0] for line in want.splitlines() if re.search(r"\d+ tests +\d+ s$", line)}
    if code or known != shown:
        return f"suites: the page shows {sorted(shown)}, scripts/test has {sorted(known)}"
    code, out = run(f"scripts/test {QUICK_SUITE}", folder)
    pattern = "".join(f"{line}\n" for line in want.splitlines() if not re.search(r"\d+ tests", line) or line.startswith(QUICK_SUITE))
    numbers = re.compile(r" *\d+")
    if code or numbers.sub(" N", pattern) != numbers.sub(" N", out):
        return f"scripts/test {QUICK_SUITE} prints\n{out}, the page\n{pattern}"
    return ""


def directive(comments, name):
    found = re.search(rf"<!-- {name}: (.*?) -->", comments)
    return found.group(1) if found else ""


def check_block(comments, kind, text, want, folder):
    file = directive(comments, "file")
    if file:
        (folder / file).write_text(text)
        return ""
    if kind != "sh":
        return f"nothing runs a block of kind '{kind}'"
    if "<!-- suites -->" in comments:
        return check_suites(want, folder)
    code, out = run(text, folder)
    if code != int(directive(comments, "exit") or 0):
        return f"exit code {code}\n{out}"
    return compare(want, out, directive(comments, "varies"))


def check_tables(page, root):
    """The table of commands has a row for every command of the driver, and the page no other."""
    commands = set(re.findall(r"^COMMAND\(\w+, *(\w+),", (root / "driver/commands.def").read_text(), re.M)) - {"compile"}
    shown = set(re.findall(r"^\| `ulyc (\w+)", page, re.M)) - {"model"}
    return "" if commands == shown else f"the table of commands shows {sorted(shown)}, ulyc has {sorted(commands)}"


def check_links(page, root):
    broken = [target for target in re.findall(r"\]\(([^)#:]+)\)", page) if not (root / target).exists()]
    return f"links to what is not there: {', '.join(broken)}" if broken else ""


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    page = (root / "README.md").read_text()
    blocks = list(BLOCK.finditer(page))
    failed = ran = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder_like_root(root, build, folder)
        for i, block in enumerate(blocks):
            comments, kind, text = block.groups()
            if kind == "text":
                if i == 0 or blocks[i - 1].group(2) != "sh":
                    sys.exit(f"README.md: the output in front of line {page.count(chr(10), 0, block.end())} belongs to no command")
                continue
            follows = blocks[i + 1] if i + 1 < len(blocks) else None
            behind = follows is not None and follows.group(2) == "text" and not page[block.end() : follows.start()].strip()
            problem = check_block(comments, kind, text, follows.group(3) if behind else "", folder)
            ran += 1
            if problem:
                failed += 1
                print(f"README.md:{page.count(chr(10), 0, block.start(2)) + 1}: {problem}")
    for problem in (check_tables(page, root), check_links(page, root)):
        if problem:
            failed += 1
            print(f"README.md: {problem}")
    print(f"{ran} blocks, {failed} problems")
    return 1 if failed or ran < 5 else 0


sys.exit(main())
