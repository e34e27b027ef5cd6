"""Makes a failing spec small: results, entries' statements, whole repeats and declarations go while it still fails."""
import re

TRIES = 120


def blocks(lines):
    """(begin, end) of every statement, those with braces whole; the larger ones first."""
    found = []
    for i, line in enumerate(lines):
        if line.rstrip().endswith("{"):
            depth, j = 0, i
            while True:
                depth += lines[j].rstrip().endswith("{") - (lines[j].strip() == "}")
                if depth == 0:
                    break
                j += 1
            found.append((i, j + 1))
        elif line.strip() not in ("}", "ulyc 1") and not re.match(r"(free|grid|dtype) |  return ", line):
            found.append((i, i + 1))
    return sorted(found, key=lambda r: r[0] - r[1])


def without_results(text):
    """The spec with each one of an entry's results alone, and each one left out."""
    head = re.search(r"^model (\w+)\((.*)\) -> \((.*)\) \{$", text, re.M)
    if not head:
        return
    results, values = re.findall(r"o\d+: \w+\[[^\]]*\]", head[3]), re.search(r"^  return (.*)$", text[head.end() :], re.M)
    names = values[1].split(", ")
    for keep in [[i] for i in range(len(names))] + [[j for j in range(len(names)) if j != i] for i in range(len(names))]:
        if 0 < len(keep) < len(names):
            new = text[: head.start(3)] + ", ".join(results[i] for i in keep) + text[head.end(3) :]
            yield new.replace(values[0], "  return " + ", ".join(names[i] for i in keep))


def without_lines(text):
    lines = text.splitlines()
    for begin, end in blocks(lines):
        yield "\n".join(lines[:begin] + lines[end:]) + "\n"
    for i, line in enumerate(lines):  # a value in the place of what is made of it
        made = re.match(r"\s*(v\d+) = (.*)$", line)
        for other in re.findall(r"\b[vx]\d+\b", made[2]) if made else ():
            rest = "\n".join(lines[:i] + lines[i + 1 :]) + "\n"
            yield re.sub(rf"\b{made[1]}\b", other, rest)


def shrink(text, fails):
    tries = 0
    changed = True
    while changed and tries < TRIES:
        changed = False
        for candidate in [*without_results(text), *without_lines(text)]:
            tries += 1
            if tries > TRIES:
                break
            if fails(candidate):
                text, changed = candidate, True
                break
    return text
