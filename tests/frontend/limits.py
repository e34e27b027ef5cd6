"""Prints a spec that is too large in one way. Usage: limits.py WHAT N"""
import sys

HEAD = "ulyc 1\nconst D = 4\nfree B, S\ngrid sp(S)\ndtype f32\n"
X = "(x: [B, S, D]) -> [B, S, D]"


def layers(n):
    yield f"layer l0{X} = x + 1"
    for i in range(1, n):
        yield f"layer l{i}{X} = l{i - 1}(x)"
    yield f"model m{X} = l{n - 1}(x)"


def doubling(n):
    yield f"layer l0{X} = softmax(x)"
    for i in range(1, n):
        yield f"layer l{i}{X} = l{i - 1}(l{i - 1}(x))"
    yield f"model m{X} = l{n - 1}(x)"


def consts(n):
    yield "fn g0(x) = x + 1"
    for i in range(1, n):
        yield f"fn g{i}(x) = g{i - 1}(g{i - 1}(x))"
    yield f"const c = g{n - 1}(1)"
    yield f"model m{X} = x"


def functions(n):
    yield "fn g0(x) = x * sin(x)"
    for i in range(1, n):
        yield f"fn g{i}(x) = g{i - 1}(x) * g{i - 1}(x + {i}.5)"
    yield f"model m{X} = g{n - 1}(x)"


def function_depth(n):
    yield "fn g0(x) = x + 1"
    for i in range(1, n):
        yield f"fn g{i}(x) = g{i - 1}(x)"
    yield f"model m{X} = g{n - 1}(x)"


def function_height(n):
    yield f"fn g0(x) = {'(' * 40}x{' + 1)' * 40}"
    for i in range(1, n):
        yield f"fn g{i}(x) = {'(' * 40}g{i - 1}(x){' + 1)' * 40}"
    yield f"model m{X} = g{n - 1}(x)"


def repeats(n):
    yield f"model m{X} {{"
    yield "  y = x"
    yield f'  repeat {n} as i {{ repeat {n} as j {{ y = linear(y, D, name = "a.{{i}}.{{j}}") }} }}'
    yield "  return y\n}"


def carried(n):
    yield f"model m{X} {{"
    yield from (f"  y{i} = x" for i in range(n))
    yield "  repeat 2 {"
    yield from (f"    y{i} = y{i} + 1" for i in range(n))
    yield "  }\n  return y1\n}"


def list(n):
    yield f"const F = [{', '.join(map(str, range(n)))}]"
    yield f"model m{X} = x + F[position(x)[..., _]]"


def chain(n):
    yield f"fn f(x) = {' + '.join(f'x * {i}.5' for i in range(400))}"
    yield f"layer l{X} {{"
    yield "  y0 = x"
    yield from (f"  y{i + 1} = f(y{i})" for i in range(n))
    yield f"  return y{n}\n}}"


def operands(n):
    yield f"fn all({', '.join(f'a{i}' for i in range(n))}) = {' + '.join(f'a{i}' for i in range(n))}"
    yield f"model m({', '.join(f'x{i}: [B, S, D]' for i in range(n))}) -> [B, S, D] = all({', '.join(f'x{i}' for i in range(n))})"


print(HEAD + "\n".join(globals()[sys.argv[1]](int(sys.argv[2]))))
