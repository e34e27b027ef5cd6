"""Statements of random specs that compute with elements, or move or add them: one function an operation of the language. Each adds a statement to a body, or does nothing where
nothing fits. random_layers.py has the others."""
import re

from random_scalars import Scalars, fit
from random_values import FLOATS, HALVES, INTS, dim, terms

WIDTHS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 17, 20, 24, 31, 32, 33, 48, 64, 65]
TILES = [63, 95, 96, 97, 127, 128, 129, 150, 255, 256, 257, 287, 288, 289, 511, 512, 513, 530]
MAX_RANK = 5
OPS = []


def op(weight):
    def add(function):
        OPS.append((weight, function))
        return function
    return add


def is_const(v):
    return bool(v.dims) and isinstance(v.dims[-1], int)


def is_float(v):
    return v.is_float()


def width(b):
    """A new size: mostly one that is there."""
    have = [d for v in b.values for d in v.dims if isinstance(d, int)]
    return b.rng.choice(have) if have and b.rng.random() < 0.5 else b.rng.choice(WIDTHS if b.rng.random() < 0.9 else TILES)


def param(b, dims, dtype=None):
    """A parameter of its own: of the spec's dtype, where none is given."""
    dims = f"[{', '.join(str(d) for d in dims)}]"
    return f"param({b.param()}, {dims if dtype in (None, b.spec.dtype) else dtype + dims})"


def random(b):
    b.rng.choices([f for _, f in OPS], [w for w, _ in OPS])[0](b)


# ---- elementwise code

def leaves(b, base, wanted):
    """What stretches to |base|, and positions and indices; mostly a few of them, so that expressions meet the same ones again. Floats are of the dtype of |base|, or cast to it."""
    found = [(fit(v, base.dims), v) for v in b.values if wanted(v)]
    found = [(t, v) for t, v in found if t]
    few = [(fit(base, base.dims), base)]
    for text, v in (b.rng.choice(found) for _ in range(min(len(found), b.rng.randrange(1, 5)))):
        if v.is_float() and base.is_float() and v.dtype != base.dtype and not (v.weak and not base.weak and b.rng.random() < 0.7):
            text, v = f"cast({text}, {base.dtype})", v.named(v.name)
            v.exact = v.exact and base.dtype == "f32"
        few.append((text, v))
    rows = b.row_dim(base)
    if rows is not None and b.rng.random() < 0.4:
        position = base.named(f"position({base.name})")
        position.dtype, position.dims, position.mag, position.exact = "i32", base.dims[: rows + 1], b.size(base.dims[rows]), True
        text = position.name + ("[" + ", ".join(["..."] + ["_"] * (len(base.dims) - rows - 1)) + "]" if rows + 1 < len(base.dims) else "")
        few.append((text, position))
    if is_const(base) and b.rng.random() < 0.3:
        iota = base.named(f"iota({base.dims[-1]})")
        iota.dtype, iota.dims, iota.mag, iota.exact = "i32", base.dims[-1:], base.dims[-1], True
        few.append((iota.name, iota))
    return few


def scalars(b, base, wanted):
    sizes = b.sizes if b.rng.random() < 0.15 else ()  # as numbers that are known at bind
    return Scalars(b.rng, leaves(b, base, wanted), b.spec.functions, base.dtype, b.floats + [(f"(1.0 / {s})", 1.0) for s in sizes], b.ints + [(s, 2 * b.sizes[s] + 6) for s in sizes])


def finish(b, s):
    for name in s.used:
        b.used.add(name)


@op(9)
def elementwise(b):
    base = b.pick(is_float)
    if not base or not b.pay(10 * b.elements(base.dims)):
        return
    s = scalars(b, base, lambda v: not v.is_float() or v.mag < 1e4)
    text, mag = s.floats(b.rng.choice([1, 1, 2, 2, 3, 4]))
    halves = base.is_half() or b.spec.dtype in HALVES
    if not re.search(rf"\b{base.name}\b(?!\))", text) or (halves and "(if" in text):  # the shape comes from it, and the dtype where it is not in a condition alone
        text, mag = f"{text} + 0.5 * {base.name}", mag + base.mag
    finish(b, s)
    if mag > 100:
        text, mag = f"({text}) * 0.05", 0.05 * mag
    if base.weak and halves:  # where all give way, which one wins is the order's
        text = f"cast({text}, {base.dtype})"
    b.assign(text, base.dtype, base.dims, mag)


@op(1)
def chosen(b):
    """Another operation in each iteration of a repeat, or call of a layer."""
    x = b.pick(lambda v: is_float(v) and v.mag < 50 and not v.weak)
    if not x or not b.ints or not b.pay(20 * b.elements(x.dims)):
        return
    y = b.pick(lambda v: v.dtype == x.dtype and v.dims == x.dims and v.mag < 50 and not v.weak)
    other = b.rng.choice([f"tanh({y.name})", f"0.5 * {y.name}", y.name, f"softmax({y.name})" if y.dims else f"sin({y.name})"])
    b.assign(f"if {b.rng.choice(b.ints)[0]} % 2 == {b.rng.randrange(2)} then {x.name} else {other}", x.dtype, x.dims, max(x.mag, y.mag, 1))


@op(2)
def integers(b):
    base = b.pick(lambda v: v.is_int())
    if not base or not b.pay(10 * b.elements(base.dims)):
        return
    s = scalars(b, base, lambda v: not v.is_float())
    text, _ = s.ints(b.rng.choice([1, 2, 3]))
    limit = b.rng.choice([2, 3, 7, 9, 20])
    wide = s.wide or base.dtype == "i64"
    finish(b, s)
    b.assign(f"({text} + 0 * {fit(base, base.dims)}) % {limit}", "i64" if wide else "i32", base.dims, limit, True, limit)


@op(1)
def bools(b):
    base = b.pick(lambda v: not v.is_float() or v.exact)
    if not base or not b.pay(10 * b.elements(base.dims)):
        return
    s = scalars(b, base, lambda v: not v.is_float() or v.exact)
    text = s.bools(b.rng.choice([0, 1, 2]))
    if not text:
        return
    own = base.name if base.dtype == "bool" else f"{base.name} > 0.1" if base.is_float() else f"{base.name} % 2 == 0"
    finish(b, s)
    b.assign(f"({own}) {b.rng.choice(['and', 'or'])} {text}", "bool", base.dims, 1, True, 2)


@op(2)
def casts(b):
    v = b.pick(lambda v: v.mag < 1000)
    if not v:
        return
    if v.is_float() and v.exact and b.rng.random() < 0.4:
        b.assign(f"cast(8.0 * {v.name}, i32)", "i32", v.dims, 8 * v.mag, True)
    elif v.is_float():
        dtype = b.rng.choice(FLOATS)
        b.assign(f"cast({v.name}, {dtype})", dtype, v.dims, v.mag, v.exact and dtype in ("f32", v.dtype))
    elif b.rng.random() < 0.5:
        dtype = b.float_type()
        b.assign(f"0.25 * cast({v.name}, {dtype})", dtype, v.dims, 0.25 * v.mag)
    else:
        dtype = b.rng.choice(INTS)
        text = f"cast({v.name}{' % 200' if v.dtype != 'bool' and v.mag > 100 else ''}, {dtype})" if v.limit else f"cast(abs({v.name}) % 100, {dtype})"
        if v.dtype != "bool" or v.limit:
            b.assign(text, dtype, v.dims, min(v.mag, 200), True, v.limit if 0 < v.limit <= 100 else 0)


# ---- rows and columns

def bounds(b, d):
    """A range of a dim, as text, with one end open now and then, and its size."""
    rng, size = b.rng, b.size(d)
    kind = rng.randrange(7)
    if kind < 2 and size > 1:  # all but a few, at one end
        n = rng.randrange(1, min(size, 5))
        if isinstance(d, int):
            return (f"{n} :" if kind else f": -{n}"), d - n
        mul, symbol, add = terms(d)
        if add == 0:
            return rng.choice([f"{n} :", f": -{n}", f": {d} - {n}"]), dim(mul, symbol, -n)
    if kind == 2:  # the last ones
        n = rng.randrange(1, size + 1)
        return (f"-{n} :" if isinstance(d, int) or rng.random() < 0.5 else f"{d} - {n} : {d}") if n < 8 else f"-{n} :", n
    if kind == 3:
        n = rng.randrange(1, size + 1)
        return f": {n}", n
    begin = rng.randrange(size)
    end = rng.randrange(begin + 1, size + 1)
    return f"{begin} : {end}", end - begin


@op(4)
def slices(b):
    v = b.pick(lambda v: len(v.dims) > 0)
    if not v:
        return
    items, dims, last = [], [], -1
    many = b.rng.random() < 0.2
    d = b.rng.randrange(len(v.dims))
    for i, size in enumerate(v.dims):
        if i == d or (many and b.rng.random() < 0.5):
            last = i
            if b.rng.random() < 0.4:
                at = b.rng.randrange(b.size(size))
                items.append(str(at if b.rng.random() < 0.7 else at - b.size(size)))
            else:
                text, n = bounds(b, size)
                items.append(text)
                dims.append(n)
        else:
            items.append(":")
            dims.append(size)
    if b.rng.random() < 0.3 and last == d == len(v.dims) - 1 and not many:
        items = ["...", items[d]]
    else:
        items = items[: last + 1]
    b.same(f"{v.name}[{', '.join(items)}]", v, dims)


@op(1)
def inserts(b):
    v = b.pick(lambda v: 0 < len(v.dims) < 4)
    if not v:
        return
    d = b.rng.randrange(len(v.dims) + 1)
    items = [":"] * d + ["_"] + ([":"] * (len(v.dims) - d) if b.rng.random() < 0.5 else [])
    b.same(f"{v.name}[{', '.join(items)}]", v, v.dims[:d] + (1,) + v.dims[d:])


@op(1)
def transposes(b):
    v = b.pick(lambda v: len(v.dims) >= 2)
    if v:
        b.same(f"transpose({v.name})", v, v.dims[:-2] + (v.dims[-1], v.dims[-2]))


@op(2)
def reshapes(b):
    """Dims are joined, or one is taken apart, or both: what the grid splits stays the outermost of its own."""
    v = b.pick(lambda v: 0 < len(v.dims) <= MAX_RANK)
    if not v:
        return
    rng, dims, i = b.rng, [], 0
    while i < len(v.dims):
        d = v.dims[i]
        i += 1
        mul, symbol, add = (d, None, 0) if isinstance(d, int) else terms(d)
        while add == 0 and i < len(v.dims) and isinstance(v.dims[i], int) and rng.random() < 0.5:
            mul *= v.dims[i]
            i += 1
        parts = [p for p in (2, 3, 4, 5, 8) if mul % p == 0]
        if add == 0 and parts and rng.random() < 0.5 and len(dims) + len(v.dims) - i < MAX_RANK:
            part = rng.choice(parts)
            dims.append(dim(mul // part, symbol, 0) if symbol else mul // part)
            dims.append(part)
        else:
            dims.append(dim(mul, symbol, add) if symbol else mul)
    if rng.random() < 0.1 and len(dims) < MAX_RANK:
        dims.insert(rng.randrange(1, len(dims) + 1), 1)
    b.same(f"reshape({v.name}, [{', '.join(str(d) for d in dims)}])", v, dims)


@op(2)
def splits(b):
    v = b.pick(lambda v: is_const(v) and v.dims[-1] > 1)
    if not v:
        return
    rest, sizes = v.dims[-1], []
    while rest > 0 and len(sizes) < 5:
        sizes.append(b.rng.randrange(1, rest + 1))
        rest -= sizes[-1]
    if rest:
        sizes.append(rest)
    if len(sizes) == 1:
        return
    if v.dims[-1] % 3 == 0 and b.rng.random() < 0.4:
        sizes = [v.dims[-1] // 3] * 3
    parts = [b.result(v.dtype, v.dims[:-1] + (n,), v.mag, v.exact, v.limit) for n in sizes]
    b.line(f"{', '.join(p.name for p in parts)} = split({v.name}, [{', '.join(str(n) for n in sizes)}])")
    for part in parts:
        b.add(part)


def stretched(dims, other):
    """What two lists of dims stretch to, or None."""
    out = [a if a == o or o == 1 else o if a == 1 else None for a, o in zip(dims, other)]
    return None if len(dims) != len(other) or None in out else tuple(out)


@op(3)
def concats(b):
    v = b.pick(is_const)
    if not v:
        return
    pieces, dims = [v], v.dims[:-1]
    for _ in range(b.rng.randrange(1, 4)):
        x = b.pick(lambda x: is_const(x) and x.dtype == v.dtype and stretched(dims, x.dims[:-1]) is not None)
        dims = stretched(dims, x.dims[:-1])
        pieces.append(x)
    b.rng.shuffle(pieces)
    total = sum(x.dims[-1] for x in pieces)
    if total > 600 or any(x.weak for x in pieces) and (b.spec.dtype in HALVES or v.is_half()):
        return
    exact, limit = all(x.exact for x in pieces), max(x.limit for x in pieces) if all(x.limit for x in pieces) else 0
    b.assign(f"concat({', '.join(x.name for x in pieces)})", v.dtype, dims + (total,), max(x.mag for x in pieces), exact, limit)


@op(3)
def shifts(b):
    v = b.pick(lambda v: len(v.dims) >= 2)
    if not v:
        return
    rows = b.size(v.dims[b.row_dim(v)])
    n = b.rng.choice([1, -1, 1, -1, 2, -3, 5, rows - 1, rows, -rows, rows + 1, 1 - rows, 0])
    fill = b.rng.choice(["", "", ", fill = true" if v.dtype == "bool" else ", fill = 1" if not v.is_float() else b.rng.choice([", fill = 0.5", ", fill = -1.0", ", fill = 2"])])
    value = b.same(f"shift({v.name}, {n}{fill})", v)
    value.mag = max(value.mag, 2.0)
    value.limit = v.limit and max(v.limit, 2)


@op(3)
def sums(b):
    v = b.pick(lambda v: is_float(v) and len(v.dims) > 0)
    if not v:
        return
    d, keep = b.rng.randrange(len(v.dims)), b.rng.random() < 0.4
    mean = b.rng.random() < 0.5 or v.mag * b.size(v.dims[d]) > 3e4  # f16 ends at 65504
    dims = v.dims[:d] + ((1,) if keep else ()) + v.dims[d + 1 :]
    at = d if b.rng.random() < 0.7 else d - len(v.dims)
    text, mag = f"{'mean' if mean else 'sum'}({v.name}, dim = {at}{', keep = true' if keep else ''})", v.mag * (1 if mean else b.size(v.dims[d]))
    b.assign(text if mag < 100 else f"{text} * {20 / mag:.3g}", v.dtype, dims, min(mag, 20))


@op(1)
def counts(b):
    """Sums and means of ints and bools."""
    v = b.pick(lambda v: not is_float(v) and len(v.dims) > 0)
    if not v:
        return
    d, keep = b.rng.randrange(len(v.dims)), b.rng.random() < 0.4
    dims, mag = v.dims[:d] + ((1,) if keep else ()) + v.dims[d + 1 :], v.mag * b.size(v.dims[d])
    more = f"({v.name}, dim = {d}{', keep = true' if keep else ''})"
    if b.rng.random() < 0.3:
        b.assign(f"mean{more}", "f32", dims, v.mag)
    else:
        b.assign(f"sum{more}", "i64", dims, mag, True)


@op(1)
def softmaxes(b):
    v = b.pick(lambda v: is_float(v) and len(v.dims) > 0 and v.mag < 50)
    if v and b.pay(20 * b.elements(v.dims)):
        text = f"softmax({v.name})"
        b.assign(b.rng.choice([text, text, f"softmax(2.0 * {v.name})", f"{text} * 3.0", f"softmax(tanh({v.name}) * 4.0)"]), v.dtype, v.dims, 3.0)


@op(2)
def gathers(b):
    ids = b.pick(lambda v: v.dtype in ("i32", "i64") and 1 <= len(v.dims) <= 2)
    rows = b.pick(lambda v: v.dims and b.row_dim(v) <= 1) if not ids or b.rng.random() < 0.2 else None
    if rows:
        ids = rows.named(f"position({rows.name})")
        ids.dims, ids.limit = rows.dims[: b.row_dim(rows) + 1], 0
    if not ids:
        return
    n, d, dtype = ids.limit or b.rng.choice([2, 7, 20]), width(b), b.float_type()
    index = ids.name if ids.limit else f"({ids.name}) % {n}"
    made = b.find(lambda v: len(v.dims) in (1, 2, 3) and v.dims[0] == n and len(ids.dims) + len(v.dims) <= MAX_RANK)
    if made and b.rng.random() < 0.5:
        w = b.use(b.rng.choice(made))
        value = b.same(f"{w.name}[{index}]", w, ids.dims + w.dims[1:])
        value.weight = value.weak = False
    elif b.rng.random() < 0.5:
        b.assign(f"embed({index}, {n}, {d}, name = {b.param()})", b.spec.dtype, ids.dims + (d,), 1.7, True)
    else:
        w = b.assign(param(b, (n, d), dtype), dtype, (n, d), 1.7, True)
        value = b.same(f"{b.use(w).name}[{index}]", w, ids.dims + (d,))
        value.weight = value.weak = False


@op(2)
def parameters(b):
    """Tables, vectors and matrices that other statements may take as weights, biases and tables."""
    n, d, dtype = width(b), width(b), b.float_type()
    dims = b.rng.choice([(n,), (n, d), (n, d), (3, d)])
    text = param(b, dims, dtype)
    if b.shared and b.rng.random() < 0.5:  # one that is there, by its name
        text, dims, dtype = b.rng.choice(b.shared)
        text = f"{text[:-1]}, tie = true)"
    elif not b.loops:
        b.shared.append((text, dims, dtype))
    b.assign(b.rng.choice([text, text, f"1.0 + 0.5 * {text}", f"tanh({text})"]), dtype, dims, 1.7, text.startswith("param"))
