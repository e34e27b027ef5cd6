"""The habits of the tree that a script can see: layers include downwards only, file names are unique, and so are types of headers, files and functions keep to their size.
Usage: check_tree.py [--budget] ROOT. With --budget: a table of sizes."""
import collections
import pathlib
import re
import subprocess
import sys

# A folder may include from those named behind it, and from itself. Most specific first.
LAYERS = {
    "runtime/base": ["runtime/abi.h"],
    "runtime": ["runtime"],
    "frontend": ["runtime/base"],
    "passes": ["frontend", "runtime/base", "runtime/abi.h", "runtime/kernel_abi.h"],
    "codegen/cpu/templates": ["runtime/base", "runtime/abi.h", "runtime/kernel_abi.h"],
    "codegen/reference": ["codegen", "passes", "frontend", "runtime/base", "runtime/reference", "runtime/abi.h", "runtime/kernel_abi.h"],
    "codegen": ["passes", "frontend", "runtime/base", "runtime/abi.h", "runtime/kernel_abi.h"],
    "driver": ["codegen", "passes", "frontend", "runtime"],
}
LIMITS = {".c": 600, ".h": 250}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
# A function's first line at the left margin, up to its opening brace.
FUNCTION = re.compile(r"^(?!(?:typedef|struct|enum|union|#|//|\}|static const|const)\b)[A-Za-z_][^;={}\n]*\)\s*\{$", re.M)
FUNCTION_LIMIT = 60
# A type that a header defines.
TYPE = re.compile(r"^(?:typedef )?(?:struct|enum|union) (\w+) \{|^\} (\w+);", re.M)


def tracked(root):
    names = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True).stdout.split("\n")
    if not any(names):
        names = [str(p.relative_to(root)) for p in pathlib.Path(root).rglob("*") if "build" not in p.parts]
    return [n for n in names if n.endswith((".c", ".h", ".def"))]


def check_layers(files, texts):
    folders = {f.split("/")[0] for f in files}
    for name in files:
        layer = next((l for l in LAYERS if name.startswith(l + "/")), None)
        if layer is None:
            continue
        for include in INCLUDE.findall(texts[name]):
            if include.split("/")[0] not in folders or "/" not in include:
                continue
            allowed = [layer] + LAYERS[layer]
            if not any(include == a or include.startswith(a + "/") for a in allowed):
                yield f"{name} includes {include}: {layer} may only see {', '.join(allowed)}"


def check_names(files):
    by_name = collections.defaultdict(list)
    for name in files:
        base = name.rsplit("/", 1)[-1]
        by_name[base].append(name)
        if not re.fullmatch(r"[a-z0-9_]+\.\w+", base):
            yield f"{name}: file names are snake_case"
    for base, names in by_name.items():
        if len(names) > 1:
            yield f"{base} names several files: {', '.join(names)}"


def check_types(files, texts):
    """One name, one meaning, also where headers never meet."""
    by_name = collections.defaultdict(set)
    for name in files:
        if name.endswith(".h") and not name.startswith("tests/fuzz/fake_mpi/"):
            for match in TYPE.finditer(texts[name]):
                by_name[match[1] or match[2]].add(name)
    for type_name, names in by_name.items():
        if len(names) > 1:
            yield f"{type_name} is defined in several headers: {', '.join(sorted(names))}"


def functions(text):
    for match in FUNCTION.finditer(text):
        end = text.find("\n}", match.start())
        if end >= 0:
            name = re.search(r"(\w+)\s*\(", match.group())
            yield name.group(1) if name else "?", text.count("\n", match.start(), end) + 2


def sizes(files, texts):
    for name in files:
        limit = LIMITS.get(name[name.rfind(".") :])
        lines = texts[name].count("\n")
        if limit and lines > limit:
            yield f"{name}: {lines} lines, budget {limit}"
        if name.endswith(".c"):
            for function, length in functions(texts[name]):
                if length > FUNCTION_LIMIT:
                    yield f"{name}: {function} has {length} lines, budget {FUNCTION_LIMIT}"


def budget(files, texts):
    total = collections.Counter()
    count = collections.Counter()
    for name in files:
        folder = "/".join(name.split("/")[:-1]) or "."
        total[folder] += texts[name].count("\n")
        count[folder] += 1
    for folder in sorted(total):
        print(f"{folder:32} {count[folder]:4} files {total[folder]:7} lines")
    print(f"{'all':32} {sum(count.values()):4} files {sum(total.values()):7} lines")
    for line in sizes(files, texts):
        print("over: " + line)


def main():
    root = sys.argv[-1]
    files = tracked(root)
    texts = {name: (pathlib.Path(root) / name).read_text(errors="replace") for name in files if (pathlib.Path(root) / name).exists()}
    files = [name for name in files if name in texts]
    if "--budget" in sys.argv:
        budget(files, texts)
        return 0
    problems = list(check_layers(files, texts)) + list(check_names(files)) + list(check_types(files, texts))
    for problem in problems:
        print(problem)
    print(f"{len(files)} files, {len(problems)} problems")
    return bool(problems)


sys.exit(main())
