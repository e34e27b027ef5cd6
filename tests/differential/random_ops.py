"""Statements of random specs: one function an operation of the language. Each adds a statement to a body, or returns None where nothing fits."""
import re

from random_masks import Rules
from random_scalars import Scalars, fit, is_float

WIDTHS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 17, 20, 24, 31, 32, 33, 48, 64, 65]
TILES = [63, 95, 96, 97, 127, 128, 129, 150, 255, 256, 257, 287, 288, 289, 511, 512, 513, 530]
OPS = []


def op(weight):
    def add(function):
        OPS.append((weight, function))
        return function
    return add


def is_const(v):
    return bool(v.dims) and isinstance(v.dims[-1], int)


def f32(v):
    return v.dtype == "f32"


def width(b):
    """A new size: mostly one that is there."""
    have = [d for v in b.values for d in v.dims if isinstance(d, int)]
    return b.rng.choice(have) if have and b.rng.random() < 0.5 else b.rng.choice(WIDTHS if b.rng.random() < 0.9 else TILES)


def random(b):
    statement = b.rng.choices([f for _, f in OPS], [w for w, _ in OPS])[0]
    statement(b)


# ---- elementwise code

def row_dim(b, v):
    """What position counts: the last dim that is not a number; of [B, 4] the second."""
    rows = [i for i, d in enumerate(v.dims) if not isinstance(d, int)][-1:]
    if rows == [0] and len(v.dims) > 1 and v.dims[0][-1] not in b.spec.grid:
        return 1
    return rows[0] if rows else (0 if len(v.dims) == 1 else None)


def leaves(b, base, wanted=lambda v: True):
    """What stretches to |base|, and positions and indices; mostly a few of them, so that expressions meet the same ones again."""
    found = [(fit(v, base.dims), v) for v in b.values if wanted(v)]
    found = [(t, v) for t, v in found if t]
    few = [(fit(base, base.dims), base)] + [b.rng.choice(found) for _ in range(min(len(found), b.rng.randrange(1, 5)))]
    rows = row_dim(b, base)
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


def scalars(b, base):
    return Scalars(b.rng, leaves(b, base, lambda v: v.dtype != "f32" or v.mag < 1e4), b.spec.functions)


def finish(b, s):
    for name in s.used:
        b.used.add(name)


@op(9)
def elementwise(b):
    base = b.pick(f32)
    if not base or not b.pay(10 * b.elements(base.dims)):
        return
    s = scalars(b, base)
    text, mag = s.floats(b.rng.choice([1, 1, 2, 2, 3, 4]))
    if not re.search(rf"\b{base.name}\b(?!\))", text):  # the shape comes from it
        text, mag = f"{text} + 0.5 * {base.name}", mag + base.mag
    finish(b, s)
    b.assign(f"({text}) * 0.05" if mag > 100 else text, "f32", base.dims, min(mag, 0.05 * mag) if mag > 100 else mag)


@op(2)
def integers(b):
    base = b.pick(lambda v: v.dtype in ("i32", "i64"))
    if not base or not b.pay(10 * b.elements(base.dims)):
        return
    s = Scalars(b.rng, leaves(b, base, lambda v: v.dtype in ("i32", "i64", "bool")))
    text, _ = s.ints(b.rng.choice([1, 2, 3]))
    limit = b.rng.choice([2, 3, 7, 9, 20])
    wide = s.wide or base.dtype == "i64"
    finish(b, s)
    b.assign(f"({text} + 0 * {fit(base, base.dims)}) % {limit}", "i64" if wide else "i32", base.dims, limit, True, limit)


@op(1)
def bools(b):
    base = b.pick(lambda v: v.dtype in ("i32", "i64", "bool") or (v.dtype == "f32" and v.exact))
    if not base or not b.pay(10 * b.elements(base.dims)):
        return
    s = Scalars(b.rng, leaves(b, base, lambda v: v.dtype != "f32" or v.exact))
    text = s.bools(b.rng.choice([0, 1, 2]))
    if not text:
        return
    own = {"bool": base.name, "f32": f"{base.name} > 0.1"}.get(base.dtype, f"{base.name} % 2 == 0")
    finish(b, s)
    b.assign(f"({own}) {b.rng.choice(['and', 'or'])} {text}", "bool", base.dims, 1, True, 2)


@op(1)
def casts(b):
    v = b.pick(lambda v: v.dtype != "f32" or v.exact)
    if not v:
        return
    if is_float(v.dtype):
        b.assign(f"cast(8.0 * {v.name}, i32)", "i32", v.dims, 8 * v.mag, True)
    else:
        b.assign(f"0.25 * cast({v.name}, f32)", "f32", v.dims, 0.25 * v.mag)


# ---- rows and columns

@op(3)
def slices(b):
    v = b.pick(lambda v: len(v.dims) > 0)
    if not v:
        return
    d = b.rng.randrange(len(v.dims))
    size, items, dims = b.size(v.dims[d]), [":"] * len(v.dims), list(v.dims)
    begin = b.rng.randrange(size)
    if b.rng.random() < 0.4:
        items[d] = str(begin if b.rng.random() < 0.8 or not isinstance(v.dims[d], int) else begin - size)
        del dims[d]
    else:
        end = b.rng.randrange(begin + 1, size + 1)
        items[d] = f"{begin} : {end}"
        dims[d] = end - begin
    if b.rng.random() < 0.3 and d == len(v.dims) - 1:
        items = ["...", items[d]]
    else:
        while items[-1] == ":":
            items.pop()
    b.assign(f"{v.name}[{', '.join(items)}]", v.dtype, dims, v.mag, v.exact, v.limit)


@op(1)
def inserts(b):
    v = b.pick(lambda v: 0 < len(v.dims) < 4)
    if not v:
        return
    d = b.rng.randrange(len(v.dims) + 1)
    items = [":"] * d + ["_"] + ([":"] * (len(v.dims) - d) if b.rng.random() < 0.5 else [])
    b.assign(f"{v.name}[{', '.join(items)}]", v.dtype, v.dims[:d] + (1,) + v.dims[d:], v.mag, v.exact, v.limit)


@op(1)
def transposes(b):
    v = b.pick(lambda v: len(v.dims) >= 2)
    if v:
        b.assign(f"transpose({v.name})", v.dtype, v.dims[:-2] + (v.dims[-1], v.dims[-2]), v.mag, v.exact, v.limit)


@op(3)
def sums(b):
    v = b.pick(lambda v: f32(v) and len(v.dims) > 0)
    if not v:
        return
    d, keep, mean = b.rng.randrange(len(v.dims)), b.rng.random() < 0.4, b.rng.random() < 0.5
    dims = v.dims[:d] + ((1,) if keep else ()) + v.dims[d + 1 :]
    at = d if b.rng.random() < 0.7 else d - len(v.dims)
    text, mag = f"{'mean' if mean else 'sum'}({v.name}, dim = {at}{', keep = true' if keep else ''})", v.mag * (1 if mean else b.size(v.dims[d]))
    b.assign(text if mag < 100 else f"{text} * {20 / mag:.3g}", "f32", dims, min(mag, 20))


@op(2)
def gathers(b):
    ids = b.pick(lambda v: v.dtype in ("i32", "i64") and 1 <= len(v.dims) <= 2)
    if not ids:
        return
    n, d = ids.limit or b.rng.choice([2, 7, 20]), width(b)
    index = ids.name if ids.limit else f"({ids.name}) % {n}"
    table = b.rng.choice([f"param({b.param()}, [{n}, {d}])", f"embed({index}, {n}, {d}, name = {b.param()})"])
    made = b.find(lambda v: f32(v) and len(v.dims) == 2 and v.dims[0] == n and is_const(v))
    if made and b.rng.random() < 0.5:
        w = b.use(b.rng.choice(made))
        b.assign(f"{w.name}[{index}]", "f32", ids.dims + w.dims[1:], w.mag, w.exact)
    elif table.startswith("embed"):
        b.assign(table, "f32", ids.dims + (d,), 1.7, True)
    else:
        w = b.assign(table, "f32", (n, d), 1.7, True)
        b.assign(f"{b.use(w).name}[{index}]", "f32", ids.dims + (d,), 1.7, True)


@op(1)
def parameters(b):
    """Tables, vectors and matrices that other statements may take as weights, biases and tables."""
    n, d = width(b), width(b)
    dims = b.rng.choice([(n,), (n, d), (n, d), (3, d)])
    text = f"param({b.param()}, [{', '.join(str(d) for d in dims)}])"
    b.assign(b.rng.choice([text, text, f"1.0 + 0.5 * {text}", f"tanh({text})"]), "f32", dims, 1.7, text.startswith("param"))


# ---- linear layers, norms, heads

def linear_text(b, x, n, bias=None):
    k = x.dims[-1]
    bias = b.rng.random() < 0.4 if bias is None else bias
    made = b.find(lambda v: v.weight and v.dims == (n, k) and v.mag < 4)
    kind = b.rng.randrange(9)
    if kind == 0 and made:
        return f"linear({x.name}, weight = {b.use(b.rng.choice(made)).name}{f', bias = param({b.param()}, [{n}])' if bias else ''})"
    if kind == 1:
        return f"linear({x.name}, weight = transpose(param({b.param()}, [{k}, {n}])))"
    if kind == 2:
        return f"linear({x.name}, weight = 0.5 * param({b.param()}, [{n}, {k}]) + 0.01)"
    vectors = b.find(lambda v: f32(v) and v.dims == (n,) and v.mag < 10)
    if kind == 3 and vectors:
        return f"linear({x.name}, {n}, bias = {b.use(b.rng.choice(vectors)).name}, name = {b.param()})"
    return f"linear({x.name}, {n}, name = {b.param()}{', bias = true' if bias else ''})"


def can_project(b, x, n):
    return b.elements(x.dims) * n < 3e6 and b.pay(2 * b.elements(x.dims) * n)


@op(6)
def linears(b):
    x = b.pick(lambda v: f32(v) and is_const(v) and v.mag < 50 and 1 <= len(v.dims) <= 3)
    n = width(b)
    if not x or not can_project(b, x, n):
        return
    text, mag, dims = linear_text(b, x, n), 3 * x.mag + 2, x.dims[:-1] + (n,)
    same = b.find(lambda v: f32(v) and v.dims == dims and v.mag < 50)
    kind = b.rng.randrange(6)
    if kind == 0:
        text, mag = f"{b.rng.choice(['silu', 'tanh', 'gelu'])}({text}) * {linear_text(b, x, n)}", mag * mag
    elif kind == 1 and same:
        r = b.use(b.rng.choice(same))
        text, mag = b.rng.choice([f"{r.name} + {text}", f"{text} * tanh({r.name})", f"{r.name} - 0.5 * {text}"]), mag + r.mag
    elif kind == 2:
        text = f"{b.rng.choice(['tanh', 'gelu_tanh', 'relu', 'sin'])}({text})"
    b.assign(text if mag < 100 else f"tanh({text})", "f32", dims, mag if mag < 100 else 1)


@op(3)
def norms(b):
    x = b.pick(lambda v: f32(v) and is_const(v) and v.mag < 50)
    if not x:
        return
    n, name = x.dims[-1], b.param()
    weight = b.rng.choice(["", f", weight = 1 + param({b.param()}, [{n}])", f", eps = {b.rng.choice(['1e-3', '0.1'])}"])
    kind = b.rng.choice(["rmsnorm", "layernorm"])
    text = f"{kind}({x.name}, name = {name}{weight})"
    if n < 3 and kind == "layernorm":
        text = f"layernorm({x.name}, eps = 0.5, name = {name})"
    b.assign(b.rng.choice([text, text, f"0.5 * {text}", f"tanh({text})"]), "f32", x.dims, 1.7 * n ** 0.5 + 1)


@op(2)
def heads(b):
    x = b.pick(lambda v: f32(v) and is_const(v) and len(v.dims) <= 3)
    if not x:
        return
    counts = [h for h in (1, 2, 3, 4, 5, 6, 8) if x.dims[-1] % h == 0]
    h = b.rng.choice(counts)
    b.assign(f"heads({x.name}, {h})", "f32", x.dims[:-1] + (h, x.dims[-1] // h), x.mag, x.exact)


@op(2)
def merges(b):
    x = b.pick(lambda v: f32(v) and len(v.dims) >= 2 and is_const(v) and isinstance(v.dims[-2], int))
    if x:
        b.assign(f"merge({x.name})", "f32", x.dims[:-2] + (x.dims[-2] * x.dims[-1],), x.mag, x.exact)


def headed(b, rows=None):
    return lambda v: f32(v) and len(v.dims) == 4 and v.dims[0] == "B" and is_const(v) and isinstance(v.dims[2], int) and v.mag < 50 and rows in (None, v.dims[1])


@op(2)
def ropes(b):
    x = b.pick(lambda v: headed(b)(v) and v.dims[3] >= 2)
    if not x:
        return
    turned = b.rng.choice([r for r in range(2, x.dims[3] + 1, 2)][-3:])
    pairs = b.rng.choice(["", ", pairs = \"interleaved\"", ", pairs = \"half\""])
    angles = b.find(lambda v: f32(v) and v.dims == (x.dims[0], x.dims[1], turned // 2) and v.mag < 20)
    at = b.find(lambda v: v.dtype == "i32" and v.dims in ((x.dims[0], x.dims[1]), (x.dims[1],)))
    if angles and b.rng.random() < 0.5:
        text = f"rope({x.name}, {b.use(b.rng.choice(angles)).name}{pairs})"
    else:
        place = f", at = {b.use(b.rng.choice(at)).name}" if at and b.rng.random() < 0.4 else ""
        limit = f", dim = {turned}" if turned < x.dims[3] or turned % 2 or b.rng.random() < 0.3 else ""
        if x.dims[3] % 2 and not limit:
            limit = f", dim = {turned}"
        text = f"rope({x.name}, theta = {b.rng.choice([100, 10000, 7.5])}{limit}{place}{pairs})"
    b.assign(text, "f32", x.dims, 1.5 * x.mag)


# ---- attention

def projected(b, x, h, dh, rope):
    """A head-split projection, as models write it: with it linears that share a message."""
    text = f"heads({linear_text(b, x, h * dh)}, {h})"
    if rope and dh >= 2 and dh % 2 == 0:
        text = f"rope({text}, theta = 100{rope})"
    elif b.rng.random() < 0.2:
        text = f"rmsnorm({text}, name = {b.param()})"
    return b.assign(text, "f32", x.dims[:2] + (h, dh), 3 * x.mag + 2)


def operands(b):
    """q, k and v: projections of one or two values, or values of four dims."""
    rng = b.rng
    rows3 = lambda v: f32(v) and len(v.dims) == 3 and v.dims[0] == "B" and is_const(v) and v.mag < 10
    if rng.random() < 0.6:
        x = b.pick(rows3)
        y = x if rng.random() < 0.7 else b.pick(rows3)
        group, kv, dh = rng.choice([1, 1, 2, 3, 4]), rng.choice([1, 2, 3]), rng.choice([1, 2, 4, 5, 8, 16, 17, 32])
        dv = dh if rng.random() < 0.8 else rng.choice([1, 3, 8, 12])
        if not x or not y or not can_project(b, x, group * kv * dh) or not can_project(b, y, kv * (dh + dv)):
            return None
        rope = rng.choice([None, "", "", ", pairs = \"interleaved\""])
        return projected(b, x, group * kv, dh, rope), projected(b, y, kv, dh, rope), projected(b, y, kv, dv, None)
    q = b.pick(headed(b))
    if not q:
        return None
    k = b.pick(lambda v: headed(b)(v) and v.dims[3] == q.dims[3] and q.dims[2] % v.dims[2] == 0)
    v = b.pick(lambda v: headed(b)(v) and v.dims[1:3] == k.dims[1:3]) if k else None
    return (q, k, v) if v else None


@op(5)
def attentions(b):
    rng = b.rng
    qkv = operands(b)
    if not qkv:
        return
    q, k, v = qkv
    pairs = b.elements(q.dims[:3]) * b.size(k.dims[1])
    if pairs > 4e5 or not b.pay(pairs * (q.dims[3] + v.dims[3] + 60)):
        return
    offsets = b.find(lambda x: x.dtype == "i32" and x.dims in (("B",), ()) and x.mag < 20)
    offset = rng.choice([2, 5, -1]) if rng.random() < 0.1 else b.use(rng.choice(offsets)).name if offsets and rng.random() < 0.15 else None
    for x in qkv:
        b.use(x)
    rules = Rules(b, q.dims[1], k.dims[1], q.dims[2], offset is not None)
    more = f", q_offset = {offset}" if offset is not None else ""
    mask = rules.mask()
    if rng.random() < 0.4:
        more += f", score = {rules.score()}"
    if rng.random() < 0.3:
        more += f", scale = {rng.choice(['0.3', '1.0', '-0.5'])}"
    if rng.random() < 0.15:
        more += f", sink = param({b.param()}, [{q.dims[2]}])"
    if b.in_mask_argument and rng.random() < 0.5 and mask in ("causal", "full"):
        mask = b.in_mask_argument
    b.assign(f"attention({q.name}, {k.name}, {v.name}, mask = {mask}{more})", "f32", q.dims[:3] + (v.dims[3],), v.mag)


# ---- losses

@op(1)
def losses(b):
    x = b.pick(lambda v: f32(v) and 2 <= len(v.dims) <= 3 and is_const(v) and v.mag < 50)
    ids = x and b.pick(lambda v: v.dtype in ("i32", "i64") and v.dims == x.dims[:-1])
    if not x or not ids:
        return
    n = x.dims[-1]
    logits = x.name
    if b.rng.random() < 0.6:
        n = width(b)
        if not can_project(b, x, n):
            return
        logits = linear_text(b, x, n)
        logits = b.rng.choice([logits, logits, f"3.0 * tanh({logits} / 3.0)"])
    keep = b.find(lambda v: v.dtype == "bool" and v.dims == ids.dims)
    labels = f"({ids.name} * 3 + 1) % {n}"
    if keep and b.rng.random() < 0.5:
        labels = f"if {b.use(b.rng.choice(keep)).name} or {ids.name} == 0 then {labels} else -100"
    b.assign(f"cross_entropy({logits}, {labels}{b.rng.choice(['', '', f', ignore = {n}'])})", "f32", (), 60)
