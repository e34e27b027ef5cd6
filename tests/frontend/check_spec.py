"""specs/SPEC.md against the tables and the compiler: its tables must be those of the .def files, its grammar must name every sign and word, and each
example must compile.
Usage: check_spec.py ROOT ULYC [--write]    --write: put the tables into SPEC.md"""
import pathlib
import re
import subprocess
import sys
import tempfile

STRING = r'"((?:[^"\\]|\\.)*)"'


def text(path):
    return path.read_text(encoding="utf-8")


def unescape(s):
    return s.replace('\\"', '"').replace("\\\\", "\\")


def code(s):
    return f"`{s}`".replace("|", "\\|")


def tokens(root):
    rows = re.findall(rf"^TOKEN\((\w+),\s*{STRING},\s*(\w+),\s*(\d)\)", text(root / "frontend/token.def"), re.M)
    kinds = {"SIGN": "signs", "WORD": "words", "RESERVED": "reserved"}
    return [f"{title}: " + " ".join(code(t) for _, t, k, _ in rows if k == kind) + "  " for kind, title in kinds.items()]


def scalars(root):
    rows = re.findall(rf"^SCALAR\((\w+),\s*{STRING},\s*(\d),\s*(\w+),\s*{STRING}\)", text(root / "frontend/scalar.def"), re.M)
    lines = ["| | operands | |", "|---|---|---|"]
    return lines + [f"| {code(t)} | {n} | {unescape(doc)} |" for _, t, n, kind, doc in rows if t and kind != "STORED"]


def functions(root):
    rows = re.findall(rf"^BUILTIN\((\w+),\s*{STRING},\s*{STRING}\)", text(root / "frontend/builtins.def"), re.M)
    lines = ["| | arguments | |", "|---|---|---|"]
    return lines + [f"| {code(n)} | {', '.join(p for p in params.split())} | {unescape(doc)} |" for n, params, doc in rows]


def ops(root):
    rows = re.findall(rf"^OP\((\w+),\s*{STRING},\s*(-?\d+),\s*(-?\d+),\s*(\w+),\s*{STRING}\)", text(root / "frontend/ops.def"), re.M)
    lines = ["| | split | |", "|---|---|---|"]
    return lines + [f"| {code(n)} | {split} | {unescape(doc)} |" for _, n, _, _, split, doc in rows]


def prelude(root):
    lines = [line for line in text(root / "frontend/prelude.spec").splitlines() if re.match(r"(const|fn|mask|score) ", line)]
    return ["```"] + lines + ["```"]


SECTIONS = {"table tokens": tokens, "table scalars": scalars, "table functions": functions, "table ops": ops, "prelude": prelude}


def fill(root, page):
    for name, make in SECTIONS.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.S)
        assert pattern.search(page), name
        page = pattern.sub(lambda m: m.group(1) + "\n".join(make(root)) + "\n" + m.group(2), page)
    return page


def check_grammar(root, page):
    grammar = re.search(r"<!-- grammar -->\n```\n(.*?)```", page, re.S).group(1)
    spelled = set(re.findall(r'"([^"]+)"', grammar))
    for _, t, kind, _ in re.findall(rf"^TOKEN\((\w+),\s*{STRING},\s*(\w+),\s*(\d)\)", text(root / "frontend/token.def"), re.M):
        if kind != "RESERVED" and t not in spelled:
            yield f"the grammar does not mention `{t}`"
    defined = set(re.findall(r"^(\w+)\s+=", grammar, re.M))
    for word in set(re.findall(r"(?<![\"\w])([a-z]+)(?![\"\w(])", re.sub(r'"[^"]*"|    .*$|`[^`]*`', "", grammar, flags=re.M))):
        if word not in defined:
            yield f"the grammar uses `{word}` but does not define it"


def check_examples(page, ulyc):
    examples = re.findall(r"```ulyc\n(.*?)```", page, re.S)
    for i, example in enumerate(examples):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"example{i}.spec"
            path.write_text(example, encoding="utf-8")
            run = subprocess.run([ulyc, str(path), "-o", str(path.with_suffix(".so"))], capture_output=True, text=True)
            if run.returncode:
                yield f"example {i}:\n{run.stderr}"
    print(f"{len(examples)} examples")


def main():
    root, ulyc = pathlib.Path(sys.argv[1]), sys.argv[2]
    path = root / "specs/SPEC.md"
    page = text(path)
    filled = fill(root, page)
    if "--write" in sys.argv:
        path.write_text(filled, encoding="utf-8")
        return 0
    problems = list(check_grammar(root, page)) + list(check_examples(page, ulyc))
    if filled != page:
        problems.append("its tables are not those of the .def files: run check_spec.py with --write")
    for problem in problems:
        print(f"SPEC.md: {problem}")
    return bool(problems)


sys.exit(main())
