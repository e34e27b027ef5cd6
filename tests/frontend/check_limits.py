"""What is one less than too much, just as much, and too much: `check_limits.py ROOT ULYC`. The limits are those of the headers; the error stands where the row says."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HEAD = "ulyc 1\nconst D = 4\nfree B, S\ngrid sp(S)\ndtype f32\n"  # 5 lines
X = "(x: [B, S, D]) -> [B, S, D]"


class Limit:
    """|make|(n) is a spec with n of something; |place|(n) line and column of the error, None: stands in positions.txt or nowhere. |limit|: NAME in FILE, or a number where the rule is
    no constant. |tried|: what is fine and what is not, where the checker counts what nobody else can. |other|: the spec is wrong in another way, too."""

    def __init__(self, ident, limit, make, place, tried=None, other=False):
        self.ident, self.limit, self.make, self.place, self.tried, self.other = ident, limit, make, place, tried, other

    def value(self, root):
        if isinstance(self.limit, int):
            return self.limit
        name, file = self.limit
        text = (root / file).read_text()
        return eval(re.search(name + r"\s*=\s*([0-9<* ]+)", text)[1])  # "16 << 20"


def wide(n, what, before, between, after):
    return before + between.join(what(i) for i in range(n)) + after


def text_of(n):
    head = "ulyc 1\nlayer l(x: f32[4]) -> [4] = x\n#"
    return head + "-" * (n - len(head) - 1) + "\n"


def calls(n):
    layers = "".join(f"layer l{i}{X} = l{i + 1}(x)\n" for i in range(n - 1))
    return HEAD + layers + f"layer l{n - 1}{X} = x\nmodel m{X} = l0(x)\n"


def carried(n):
    names = [f"y{i}" for i in range(n)]
    start = "".join(f"  {name} = x\n" for name in names)
    turn = "".join(f"    {name} = {name} + 1\n" for name in names)
    return HEAD + f"model m{X} {{\n{start}  repeat 2 {{\n{turn}  }}\n  return y0\n}}\n"


def sum_of(n, name):
    return " + ".join(f"{name}{i}" for i in range(n))


def operands(n):
    arguments = ", ".join(f"x{i}: [B, S, D]" for i in range(n))
    return HEAD + f"fn all({', '.join(f'a{i}' for i in range(n))}) = {sum_of(n, 'a')}\nmodel m({arguments}) -> [B, S, D] = all({', '.join(f'x{i}' for i in range(n))})\n"


def values(n):
    """n values: the input, the results of the layers, each 1 value, in 10 times as many as fit one layer."""
    rows = "".join(f"  y{i + 1} = softmax(y{i})\n" for i in range(1000))
    body = f"layer thousand{X} {{\n  y0 = x\n{rows}  return y1000\n}}\n"
    whole, rest = divmod(n - 1, 1000)
    calls = "".join(f"  z{i + 1} = thousand(z{i})\n" for i in range(whole)) + "".join(f"  z{whole + i + 1} = softmax(z{whole + i})\n" for i in range(rest))
    return HEAD + body + f"model m{X} {{\n  z0 = x\n{calls}  return z{whole + rest}\n}}\n"


def terms(n):
    """A score of n operations: its argument, constants, products, sums and sines."""
    k, rest = divmod(n, 3)
    groups = [[f"s * {i}.5" for i in range(k)][g:g + 500] for g in range(0, k, 500)]
    functions = "".join(f"fn g{g}(s) = {' + '.join(group)}\n" for g, group in enumerate(groups))
    body = "sin(" * rest + " + ".join(f"g{g}(s)" for g in range(len(groups))) + ")" * rest
    return f"ulyc 1\nfree B, S\ndtype f32\n{functions}score big(s) = {body}\n" \
           "layer a(q: [B, S, 4, 8]) -> [B, S, 4, 8] = attention(q, q, q, mask = full, score = big)\n"


def levels(n):
    """Calls and operators in one another: 30 operators and the call of the next function, and so on."""
    k, rest = divmod(n - 3, 31)
    functions = "".join(f"fn g{i}(x) = {'(' * 30}g{i - 1}(x){' + 1)' * 30}\n" for i in range(1, k + 1))
    return HEAD + f"fn g0(x) = x\n{functions}fn last(x) = {'(' * rest}g{k}(x){' + 1)' * rest}\nmodel m{X} = last(x)\n"


def turns(n):
    a, b = {999999: (999, 1001), 1000000: (1000, 1000), 1000001: (101, 9901)}[n]
    return HEAD + f"layer l{X} {{\n  y = x\n  repeat {a} {{ repeat {b} {{ y = y + 1 }} }}\n  return y\n}}\n"


def doubling(n):
    functions = "".join(f"fn g{i}(x) = g{i - 1}(g{i - 1}(x))\n" for i in range(1, n))
    return HEAD + f"fn g0(x) = x + 1\n{functions}const c = g{n - 1}(1)\nmodel m{X} = x\n"


ONE = "layer l(x: f32[4]) -> [4] = x\n"
PARSE, CHECK, GRAPH = "frontend/parse.h", "frontend/check.h", "frontend/graph.h"
LIMITS = [
    Limit("FILE_TOO_LARGE", ("ULY_MAX_SOURCE_BYTES", PARSE), text_of, None),
    Limit("LONG_NAME", ("ULY_MAX_NAME_BYTES", PARSE), lambda n: f"ulyc 1\nconst {'a' * n} = 1\n" + ONE, lambda n: (2, 7)),
    Limit("LONG_STRING", ("ULY_MAX_STRING_BYTES", PARSE), lambda n: f'ulyc 1\nlayer l(x: f32[4]) -> [4] = x + param("{"a" * n}", [4])\n', lambda n: (2, 39)),
    Limit("TOO_DEEP", ("ULY_MAX_DEPTH", PARSE), lambda n: "ulyc 1\nconst a = " + "(" * (n - 1) + "1" + ")" * (n - 1) + "\n" + ONE, lambda n: (2, 10 + n)),
    Limit("TOO_DEEP", ("ULY_MAX_DEPTH", PARSE), lambda n: "ulyc 1\nconst a = " + "[" * (n - 1) + "1" + "]" * (n - 1) + "[0]" * (n - 1) + "\n" + ONE, lambda n: (2, 10 + n)),
    Limit("TOO_DEEP", ("ULY_MAX_DEPTH", PARSE), lambda n: "ulyc 1\nconst a = " + "-" * (n - 1) + "1\n" + ONE, lambda n: (2, 10 + n)),
    Limit("TOO_LONG", ("ULY_MAX_HEIGHT", PARSE), lambda n: "ulyc 1\nconst a = " + "1 + " * n + "1\n" + ONE, None),
    Limit("TOO_MANY_STATEMENTS", ("ULY_MAX_STATEMENTS", PARSE),
          lambda n: HEAD + f"layer l{X} {{\n" + "".join(f"  y{i} = 1\n" for i in range(n - 1)) + "  return x\n}\n", lambda n: (6 + n, 3)),
    Limit("TOO_MANY_PARAMS", ("ULY_MAX_PARAMS", PARSE), lambda n: wide(n, lambda i: f"x{i}: f32[4]", "ulyc 1\nlayer l(", ",\n", ") -> [4] = x0\n"), lambda n: (1 + n, 1)),
    Limit("TOO_MANY_PARAMS", ("ULY_MAX_PARAMS", PARSE),
          lambda n: wide(n, lambda i: f"r{i}: f32[4]", "ulyc 1\nlayer l(x: f32[4]) -> (", ",\n", wide(n, lambda i: "x", ") {\n  return ", ", ", "\n}\n")), lambda n: (1 + n, 1)),
    Limit("TOO_MANY_SYMBOLS", ("ULY_GRAPH_MAX_SYMBOLS", GRAPH), lambda n: wide(n, lambda i: f"A{i}", "ulyc 1\nfree ", ",\n", "\nlayer l(x: f32[A0]) -> [A0] = x\n"), lambda n: (1 + n, 1)),
    Limit("GRID_SIZE", ("ULY_GRAPH_MAX_AXES", GRAPH),
          lambda n: wide(n, lambda i: f"A{i}", "ulyc 1\nfree ", ", ", wide(n, lambda i: f"a{i}(A{i})", "\ngrid ", ", ", "\nlayer l(x: f32[A0]) -> [A0] = x\n")), None),
    Limit("RANK_LIMIT", ("ULY_GRAPH_MAX_DIMS", GRAPH), lambda n: f"ulyc 1\nlayer l(x: f32[{', '.join('2' * n)}]) -> [{', '.join('2' * n)}] = x\n", lambda n: (2, 12)),
    Limit("REPEAT_COUNT", ("ULY_MAX_REPEAT", CHECK), lambda n: HEAD + f"layer l{X} {{\n  y = x\n  repeat {n} {{ y = y + 1 }}\n  return y\n}}\n", lambda n: (8, 10)),
    Limit("TOO_MANY_ITERATIONS", ("ULY_MAX_ITERATIONS", CHECK), turns, lambda n: (8, 16)),
    Limit("CALL_DEPTH", ("ULY_MAX_CALL_DEPTH", CHECK), calls, None),
    Limit("TOO_MANY_VALUES", ("ULY_MAX_VALUES", CHECK), values, None),
    Limit("TOO_MANY_CARRIED", ("ULY_MAX_OPERANDS", GRAPH), carried, lambda n: (7 + 2 * n, 5)),
    Limit("TOO_MANY_OPERANDS", ("ULY_MAX_OPERANDS", GRAPH), operands, None),
    Limit("LIST_SIZE", ("MAX_SELECTED_LIST", "frontend/indexing.c"), lambda n: HEAD + f"const F = [{', '.join('1' * n)}]\nmodel m{X} = x + F[position(x)[..., _]]\n", lambda n: (7, 44)),
    Limit("TOO_MANY_NODES", ("ULY_MAX_AST_NODES", PARSE), lambda n: "ulyc 1\nconst a = [" + "1," * (n - 1) + "]\n", None, other=True),
    Limit("EXPRESSION_SIZE", ("ULY_EXPR_MAX_NODES", "frontend/expr.h"), terms, lambda n: (10, 16)),
    Limit("EXPANSION_DEPTH", ("MAX_NESTING", "frontend/eval.c"), levels, None),
    Limit("TOO_MUCH_WORK", 0, doubling, None, tried=(15, 60)),
    Limit("TENSOR_TOO_LARGE", 2 ** 45, lambda n: f"ulyc 1\nlayer l(x: f32[{n}]) -> [{n}] = x\n", lambda n: (2, 9)),
]


def check(root, ulyc, folder, number):
    limit = LIMITS[number]
    most, problems = limit.tried[0] if limit.tried else limit.value(root), []
    for n in limit.tried or (most - 1, most, most + 1):
        path = os.path.join(folder, f"{number}-{n}.spec")
        with open(path, "w") as f:
            f.write(limit.make(n))
        p = subprocess.run([ulyc, "check", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
        os.unlink(path)
        said = f"{limit.ident}, {n} where {most} is the most: exit {p.returncode}\n{p.stderr[:2000]}"
        place = re.search(r":(\d+):(\d+): error: ", p.stderr)
        refused = bool(messages(root)[limit.ident].search(p.stderr))
        if n <= most and (refused or (not limit.other and (p.returncode or p.stderr))):
            problems.append("should be taken: " + said)
        elif n > most and (p.returncode != 1 or not refused):
            problems.append("should be refused: " + said)
        elif n > most and limit.place and (int(place[1]), int(place[2])) != limit.place(n):
            problems.append(f"should stand at {limit.place(n)}: {said}")
    return problems


def messages(root):
    rows = re.findall(r'^DIAG\((\w+),\s*\w+,\s*"((?:[^"\\]|\\.)*)"\)', (root / "frontend/diag.def").read_text(), re.M)
    return {ident: re.compile("error: " + ".*".join(map(re.escape, re.split(r"%(?:\.\*)?(?:ll|z|j)?[sdu]", text)))) for ident, text in rows}


def main():
    root, ulyc = pathlib.Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        problems = [p for found in pool.map(lambda i: check(root, ulyc, folder, i), range(len(LIMITS))) for p in found]
    print(f"{len(LIMITS)} limits, {len(problems)} problems")
    print("\n".join(problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
