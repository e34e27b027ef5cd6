"""What a script can see of the pages and of text files: links and files that pages name exist, lengths, tables that must be complete, no leftovers.
Usage: pages_test.py ROOT"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
LIMITS = {"ARCHITECTURE.md": 200, "STYLE.md": 80, "examples/embed.c": 110}
SUFFIXES = r"c|h|def|py|md|spec|map|sh|mlir|cmake|txt"


def tracked():
    names = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True).stdout.splitlines()
    if not names:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() and not {"build", ".git"} & set(p.relative_to(ROOT).parts)]
    return [n for n in names if (ROOT / n).is_file() and "\0" not in (ROOT / n).read_text(errors="replace")]


def rows(table, name):
    return re.findall(rf"^{name}\((\w+)", (ROOT / table).read_text(), re.M)


def links(files):
    for page in (n for n in files if n.endswith(".md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
            if not ((ROOT / page).parent / target).exists():
                yield f"{page} links to {target}, which is not there"


def named_files(files):
    """Files that ARCHITECTURE.md names, by path or by name alone; <name> and lists like emit*.c stand for several."""
    text = re.sub(r"https?://\S+", "", (ROOT / "ARCHITECTURE.md").read_text())
    for name in sorted(set(re.findall(rf"(?<![\w*>./])((?:[\w*]+/)*[\w*]+\.(?:{SUFFIXES}))\b", text))):
        pattern = re.compile("(^|/)" + re.escape(name).replace(r"\*", r"\w*") + "$")
        if not name.startswith(("model.", "x.")) and not any(pattern.search(f) for f in files):
            yield f"ARCHITECTURE.md names {name}, which is not there"
    for folder in sorted({f.split("/")[0] for f in files if "/" in f and not f.startswith(".")}):
        if f"`{folder}/`" not in text:
            yield f"ARCHITECTURE.md does not say what {folder}/ is"


def tables():
    bits = (ROOT / "ARCHITECTURE.md").read_text().split("## Same bits")[1].split("\n## ")[0]
    for kernel in rows("codegen/kernels.def", "KERNEL"):
        if not re.search(rf"^\|[^|]*\b{kernel}\b", bits, re.M):
            yield f"ARCHITECTURE.md: the bits contract has no row for {kernel}"
    flow = (ROOT / "ARCHITECTURE.md").read_text().split("## Folders")[0]
    places = [re.search(rf" {name}\b", flow) for name in rows("passes/passes.def", "(?:PASS|EMIT|PROGRAM)")]
    order = [place.start() for place in places if place]
    if len(order) != len(places) or order != sorted(order):
        yield "ARCHITECTURE.md: the flow does not show the rows of passes.def in their order"
    variables = re.findall(r'"(ULYRT_\w+)"', (ROOT / "runtime/base/env.def").read_text())
    for page in ("README.md", "SECURITY.md", "CONTRIBUTING.md"):
        for name in set(re.findall(r"\bULYRT_[A-Z]+\b", (ROOT / page).read_text())):
            if name not in variables and name not in ("ULYRT_ABI", ):
                yield f"{page} names {name}, which nothing reads"


def leftovers(files):
    for name in files:
        lines = (ROOT / name).read_text(errors="replace").splitlines()
        if name in LIMITS and len(lines) > LIMITS[name]:
            yield f"{name}: {len(lines)} lines, at most {LIMITS[name]}"
        if name in ("LICENSE", "STYLE.md", "tests/docs/pages_test.py"):
            continue
        for i, line in enumerate(lines, 1):
            if re.search(r"(^|[\s\"'=(])/(home|root|work|Users)/\w", line):
                yield f"{name}:{i}: a path of one machine"
            if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                yield f"{name}:{i}: a leftover"


def main():
    files = tracked()
    problems = [*links(files), *named_files(files), *tables(), *leftovers(files)]
    for problem in problems:
        print(problem)
    print(f"{len(files)} text files, {len(problems)} problems")
    return 1 if problems or len(files) < 50 else 0


sys.exit(main())
