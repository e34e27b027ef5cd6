"""Every mistake at its exact place, and every message in a test: `check_positions.py ROOT ULYC`.

positions.txt says what is wrong where; limits.py, read by check_limits.py, what is too much. A message that has no place stands in NO_PLACE, and check_diags.py looks for it.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_limits  # noqa: E402

ROW = re.compile(r'^DIAG\((\w+),\s*(\w+),\s*"((?:[^"\\]|\\.)*)"\)', re.M)
CONVERSION = re.compile(r"%(?:\.\*|[-+ 0#]*\d*(?:\.\d+)?)?(?:hh|h|ll|l|z|j)?[sdiuxXfgcp]")
HEAD = re.compile(r"^(?:(.*?):(\d+):(\d+): |.*?: )(error|warning): (.*)$")
MARK = re.compile(r"^( *)(\^~*) ([A-Z0-9_]+)$")
NO_PLACE = {"IR_ERROR", "IR_WARNING", "UNKNOWN_PASS", "IMPORT_NO_SPEC"}


def read_messages(root):
    rows = []
    for ident, severity, text in ROW.findall((root / "frontend/diag.def").read_text()):
        pieces = CONVERSION.split(text.replace('\\"', '"').replace("%%", "%"))
        rows.append((ident, severity.lower(), re.compile("^" + ".*".join(map(re.escape, pieces)) + "$", re.S), sum(map(len, pieces))))
    return rows


def identify(rows, severity, message):
    fitting = [(n, ident) for ident, s, pattern, n in rows if s == severity and n and pattern.match(message)]
    return {ident for n, ident in fitting if n == max(fitting)[0]}  # several where messages read alike


class Block:
    def __init__(self, number, head):
        self.number, self.lines, self.marks = number, [], []  # marks: line (0: the last argument), column, carets, id
        words = head[3:].split()
        self.escapes = words == ["\\x"]
        self.command = words[0] if words and words[0] in ("import", "fmt") else "check"
        self.arguments = words if words and words[0].startswith("-") else []
        self.indent = len(head) - len(words[-1]) if self.arguments else 0

    def add(self, line):
        mark = MARK.match(line)
        if mark:
            column = len(mark[1]) + 1 - (self.indent if not self.lines else 0)
            self.marks.append((len(self.lines), column, mark[2], mark[3]))
        else:
            self.lines.append(line)

    def run(self, ulyc, folder, rows):
        text = "\n".join(self.lines) + "\n"
        raw = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode()) if self.escapes else text.encode()
        path = os.path.join(folder, f"{self.number}.txt")
        with open(path, "wb") as f:
            f.write(raw)
        command = [ulyc, self.command] + (["--check"] if self.command == "fmt" else []) + self.arguments + [path]
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
        said = p.stderr.decode(errors="replace").split("\n")
        found = []
        for i, line in enumerate(said):
            head = HEAD.match(line)
            if not head:
                continue
            number = 0 if head[1] == "<-D>" else int(head[2] or 0)
            caret = re.match(r"^  ( *)(\^~*)$", said[i + 2]) if i + 2 < len(said) else None
            found.append((number, int(head[3] or 0), caret[2] if caret else "no caret", identify(rows, head[4], head[5])))
            if caret and len(caret[1]) + 1 != found[-1][1]:
                found.append(f"the caret stands in column {len(caret[1]) + 1}")
        problems = []
        if p.returncode != 1:
            problems.append(f"exit {p.returncode}")
        same = len(found) == len(self.marks) and all(not isinstance(f, str) and f[:3] == m[:3] and m[3] in f[3] for f, m in zip(found, self.marks))
        if not same:
            problems.append(f"found {found}, marked {self.marks}")
        return [f"block at line {self.number}: {problem}\n" + "\n".join(said) for problem in problems]


def read_blocks(path):
    blocks = []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.startswith("==="):
            blocks.append(Block(number, line))
        elif blocks and (line or blocks[-1].lines):
            blocks[-1].add(line)
    for block in blocks:
        while block.lines and not block.lines[-1]:
            block.lines.pop()
    return blocks


def main():
    root, ulyc = pathlib.Path(sys.argv[1]), sys.argv[2]
    rows = read_messages(root)
    blocks = read_blocks(root / "tests/frontend/positions.txt")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        problems = [p for found in pool.map(lambda b: b.run(ulyc, folder, rows), blocks) for p in found]
    placed = {mark[3] for block in blocks for mark in block.marks} | {limit.ident for limit in check_limits.LIMITS}
    wanted = {ident for ident, severity, _, _ in rows if severity != "note"} - NO_PLACE
    problems += [f"{ident} stands in no block and in no limit" for ident in sorted(wanted - placed)]
    problems += [f"{ident} is no message" for ident in sorted(placed - wanted)]
    print(f"{len(blocks)} blocks, {len(wanted)} messages with a place, {len(problems)} problems")
    print("\n".join(problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
