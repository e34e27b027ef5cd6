"""specs/SPEC.md against the tables and the compiler: its tables must be those of the .def files, its grammar must name every sign and word, and each
example must compile, and compute what its --target=reference build does.
Usage: check_spec.py ROOT ULYC [ULYRUN] [--write]    --write: put the tables into SPEC.md"""
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


def operations(root):
    return re.findall(rf"^OP\((\w+),\s*{STRING},\s*(-?\d+),\s*(-?\d+),\s*(\w+),\s*{STRING}\)", text(root / "frontend/ops.def"), re.M)


def functions(root):
    pattern = rf"^BUILTIN\((\w+),\s*{STRING},\s*{STRING},\s*{STRING},\s*(\w+),\s*{STRING},\s*{STRING}\)"
    split = {ident: split for ident, _, _, _, split, _ in operations(root)}
    lines = ["| function | takes | gives | what | split |", "|---|---|---|---|---|"]
    for name, params, takes, gives, op, _, formula in re.findall(pattern, text(root / "frontend/builtins.def"), re.M):
        call = code(f"{name}({', '.join(params.split())})")
        lines.append(f"| {call} | {takes} | {gives} | {unescape(formula)} | {split[op]} |")
    return lines


def ops(root):
    lines = ["| operation | split | what |", "|---|---|---|"]
    return lines + [f"| {code(n)} | {split} | {unescape(doc)} |" for _, n, _, _, split, doc in operations(root)]


def limits(root):
    lines = ["| limit | of |", "|---|---|"]
    for name in "parse.h", "check.h", "expr.h", "graph.h", "diag.h":
        for value, doc in re.findall(r"^ +ULY_\w*MAX\w* = ([\d <]+), +// (.*)$", text(root / "frontend" / name), re.M):
            lines.append(f"| {eval(value)} | {doc} |")
    return lines


def messages(root):
    """By the sections of diag.def; a gap of the format is shown as …"""
    lines = []
    for line in text(root / "frontend/diag.def").splitlines():
        title, row = re.match(r"// ---- (.*)", line), re.match(rf"DIAG\((\w+),\s*(\w+),\s*{STRING}\)", line)
        if title:
            lines += ["", f"**{title.group(1)}**", ""]
        elif row:
            shown = re.sub(r"%(?:\.\*|[-+ 0#]*\d*(?:\.\d+)?)?(?:hh|h|ll|l|z|j)?[sdiuxXfgcp]", "…", unescape(row.group(3))).replace("%%", "%")
            kind = "" if row.group(2) == "ERROR" else f"{row.group(2).lower()}: "
            lines.append(f"- {row.group(1)}: {kind}{shown}")
    return lines[1:] if lines and not lines[0] else lines


def prelude(root):
    lines = [line for line in text(root / "frontend/prelude.spec").splitlines() if re.match(r"(const|fn|mask|score) ", line)]
    return ["```"] + lines + ["```"]


SECTIONS = {"table tokens": tokens, "table scalars": scalars, "table functions": functions, "table ops": ops, "table limits": limits, "messages": messages, "prelude": prelude}


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


def check_values(ulyc, ulyrun, path, example):
    """Every entry against the reference, at small sizes, on two ranks."""
    model, reference = path.with_suffix(".so"), path.with_suffix(".ref.so")
    subprocess.run([ulyc, "--target=reference", path, "-o", reference], check=True)
    declared = subprocess.run([ulyc, "check", path], check=True, capture_output=True, text=True).stdout
    symbols = re.search(r"^free +([^#\n]*)", example, re.M).group(1).replace(" ", "").split(",")
    entries = re.findall(r"^(?:model|layer) (\w+)\n((?:  input .*\n)*)", declared, re.M)
    if not entries:
        yield f"no entry in\n{declared}"
    for entry, inputs in entries:
        command = [ulyrun, model, "--entry", entry, "--check", reference, "--weights", "rand:seed=1", "--ranks", "2", "--at", ",".join(f"{s}={5 + i}" for i, s in enumerate(symbols))]
        for i, name in enumerate(re.findall(r"^  input +(\w+)", inputs, re.M)):
            command += ["--input", f"{name}=rand:seed={i}"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode or not re.search(r"^check: [1-9]\d* operations, [1-9]", run.stdout, re.M):
            yield f"{entry}:\n{run.stdout}{run.stderr}"


def check_examples(page, ulyc, ulyrun):
    examples = re.findall(r"```ulyc\n(.*?)```", page, re.S)
    for i, example in enumerate(examples):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"example{i}.spec"
            path.write_text(example, encoding="utf-8")
            for command in [str(path), "-o", str(path.with_suffix(".so"))], ["fmt", "--check", str(path)]:
                run = subprocess.run([ulyc, *command], capture_output=True, text=True)
                if run.returncode:
                    yield f"example {i}:\n{run.stderr}"
            for problem in check_values(ulyc, ulyrun, path, example) if ulyrun else ():
                yield f"example {i}, {problem}"
    print(f"{len(examples)} examples")


def main():
    root, ulyc, ulyrun = pathlib.Path(sys.argv[1]), sys.argv[2], ([a for a in sys.argv[3:] if a != "--write"] or [""])[0]
    path = root / "specs/SPEC.md"
    page = text(path)
    filled = fill(root, page)
    if "--write" in sys.argv:
        path.write_text(filled, encoding="utf-8")
        return 0
    problems = list(check_grammar(root, page)) + list(check_examples(page, ulyc, ulyrun))
    if filled != page:
        problems.append("its tables are not those of the .def files: run check_spec.py with --write")
    for problem in problems:
        print(f"SPEC.md: {problem}")
    return bool(problems)


sys.exit(main())
