"""Statements of random specs with parameters, heads and attention, and losses; as random_ops.py."""
from random_masks import Rules
from random_ops import MAX_RANK, is_const, is_float, op, param, width

PAIRS = ", pairs = \"interleaved\"", ", pairs = \"half\""


# ---- linear layers, norms, heads

def alike(v, x):
    """Whether |v| can stand beside |x|: of its dtype, or giving way."""
    return v.is_float() and (v.dtype == x.dtype or v.weak)


def linear_text(b, x, n, bias=None):
    k = x.dims[-1]
    bias = b.rng.random() < 0.4 if bias is None else bias
    made = b.find(lambda v: alike(v, x) and v.dims == (n, k) and v.mag < 4)
    kind = b.rng.randrange(10)
    if kind == 0 and made:
        return f"linear({x.name}, weight = {b.use(b.rng.choice(made)).name}{f', bias = {param(b, (n,))}' if bias else ''})"
    if kind == 1:
        return f"linear({x.name}, weight = transpose({param(b, (k, n), b.float_type())}))"
    if kind == 2:
        return f"linear({x.name}, weight = 0.5 * {param(b, (n, k), b.float_type())} + 0.01)"
    vectors = b.find(lambda v: alike(v, x) and v.dims == (n,) and v.mag < 10)
    if kind == 3 and vectors:
        return f"linear({x.name}, {n}, bias = {b.use(b.rng.choice(vectors)).name}, name = {b.param()})"
    if kind == 4:
        return f"linear({x.name}, weight = {param(b, (n, k), b.float_type())}, bias = 0.5 * {param(b, (n,), b.float_type())})"
    terms = b.find(lambda v: alike(v, x) and v.dims == (k,) and v.mag < 2)
    if kind == 5 and terms:
        return f"linear({x.name}, weight = {param(b, (n, k), b.float_type())} * {b.use(b.rng.choice(terms)).name})"
    return f"linear({x.name}, {n}, name = {b.param()}{', bias = true' if bias else ''})"


def can_project(b, x, n):
    return b.elements(x.dims) * n < 3e6 and b.pay(2 * b.elements(x.dims) * n)


@op(6)
def linears(b):
    x = b.pick(lambda v: is_float(v) and is_const(v) and v.mag < 50 and not v.weak)
    n = width(b)
    if not x or not can_project(b, x, n):
        return
    text, mag, dims = linear_text(b, x, n), 3 * x.mag + 2, x.dims[:-1] + (n,)
    same = b.find(lambda v: alike(v, x) and v.dims == dims and v.mag < 50)
    kind = b.rng.randrange(6)
    if kind == 0:
        text, mag = f"{b.rng.choice(['silu', 'tanh', 'gelu'])}({text}) * {linear_text(b, x, n)}", mag * mag
    elif kind == 1 and same:
        r = b.use(b.rng.choice(same))
        text, mag = b.rng.choice([f"{r.name} + {text}", f"{text} * tanh({r.name})", f"{r.name} - 0.5 * {text}"]), mag + r.mag
    elif kind == 2:
        text = f"{b.rng.choice(['tanh', 'gelu_tanh', 'relu', 'sin'])}({text})"
    b.assign(text if mag < 100 else f"tanh({text})", x.dtype, dims, mag if mag < 100 else 1)


@op(3)
def norms(b):
    x = b.pick(lambda v: is_float(v) and is_const(v) and v.mag < 50 and not v.weak)
    if not x:
        return
    n, name = x.dims[-1], b.param()
    weight = b.rng.choice(["", f", weight = 1 + {param(b, (n,), b.float_type())}", f", eps = {b.rng.choice(['1e-3', '0.1'])}"])
    vectors = b.find(lambda v: alike(v, x) and v.dims == (n,) and v.mag < 10)
    if vectors and b.rng.random() < 0.3:
        weight = f", weight = {b.use(b.rng.choice(vectors)).name}"
    kind = b.rng.choice(["rmsnorm", "layernorm"])
    text = f"{kind}({x.name}, name = {name}{weight})"
    if n < 3 and kind == "layernorm":
        text = f"layernorm({x.name}, eps = 0.5, name = {name})"
    b.assign(b.rng.choice([text, text, f"0.5 * {text}", f"tanh({text})"]), x.dtype, x.dims, 1.7 * n ** 0.5 + 1)


@op(2)
def heads(b):
    x = b.pick(lambda v: is_float(v) and is_const(v) and len(v.dims) < MAX_RANK)
    if not x:
        return
    counts = [h for h in (1, 2, 3, 4, 5, 6, 8) if x.dims[-1] % h == 0]
    h = b.rng.choice(counts)
    b.same(f"heads({x.name}, {h})", x, x.dims[:-1] + (h, x.dims[-1] // h))


@op(2)
def merges(b):
    x = b.pick(lambda v: is_float(v) and len(v.dims) >= 2 and is_const(v) and isinstance(v.dims[-2], int))
    if x:
        b.same(f"merge({x.name})", x, x.dims[:-2] + (x.dims[-2] * x.dims[-1],))


def headed(v):
    return is_float(v) and len(v.dims) == 4 and is_const(v) and isinstance(v.dims[2], int) and v.mag < 50


def theta(b):
    n = b.rng.choice([100, 10000, 7.5])
    return f"{n} * ({b.rng.choice(b.ints)[0]} + 1)" if b.ints and b.rng.random() < 0.4 else str(n)


@op(2)
def ropes(b):
    x = b.pick(lambda v: headed(v) and v.dims[3] >= 2)
    if not x:
        return
    turned = b.rng.choice([r for r in range(2, x.dims[3] + 1, 2)][-3:])
    pairs = b.rng.choice(["", *PAIRS])
    angles = b.find(lambda v: v.dtype == "f32" and v.dims == (x.dims[0], x.dims[1], turned // 2) and v.mag < 20)
    at = b.find(lambda v: v.dtype == "i32" and v.dims in ((x.dims[0], x.dims[1]), (x.dims[1],)))
    if angles and b.rng.random() < 0.5:
        text = f"rope({x.name}, {b.use(b.rng.choice(angles)).name}{pairs})"
    else:
        place = f", at = {b.use(b.rng.choice(at)).name}" if at and b.rng.random() < 0.4 else ""
        limit = f", dim = {turned}" if turned < x.dims[3] or turned % 2 or b.rng.random() < 0.3 else ""
        text = f"rope({x.name}, theta = {theta(b)}{limit}{place}{pairs})"
    b.assign(text, x.dtype, x.dims, 1.5 * x.mag)


# ---- attention

def projected(b, x, h, dh, rope):
    """A head-split projection, as models write it: with it linears that share a message."""
    text = f"heads({linear_text(b, x, h * dh)}, {h})"
    if rope is not None and dh >= 2 and dh % 2 == 0:
        text = f"rope({text}, theta = {theta(b)}{rope})"
    elif b.rng.random() < 0.2:
        text = f"rmsnorm({text}, name = {b.param()})"
    return b.assign(text, x.dtype, x.dims[:2] + (h, dh), 3 * x.mag + 2)


def operands(b):
    """q, k and v: projections of one or two values, or values of four dims."""
    rng = b.rng
    rows3 = lambda v: is_float(v) and len(v.dims) == 3 and is_const(v) and v.mag < 10
    if rng.random() < 0.6:
        x = b.pick(rows3)
        y = x if rng.random() < 0.7 else b.pick(lambda v: rows3(v) and v.dtype == x.dtype and v.dims[0] == x.dims[0])
        group, kv, dh = rng.choice([1, 1, 2, 3, 4]), rng.choice([1, 2, 3]), rng.choice([1, 2, 4, 5, 8, 16, 17, 32])
        dv = dh if rng.random() < 0.8 else rng.choice([1, 3, 8, 12])
        if not x or not y or not can_project(b, x, group * kv * dh) or not can_project(b, y, kv * (dh + dv)):
            return None
        rope = rng.choice([None, "", "", PAIRS[0]])
        return projected(b, x, group * kv, dh, rope), projected(b, y, kv, dh, rope), projected(b, y, kv, dv, None)
    q = b.pick(headed)
    if not q:
        return None
    k = b.pick(lambda v: headed(v) and v.dtype == q.dtype and v.dims[0] == q.dims[0] and v.dims[3] == q.dims[3] and q.dims[2] % v.dims[2] == 0)
    v = b.pick(lambda v: headed(v) and v.dtype == q.dtype and v.dims[:3] == k.dims[:3]) if k else None
    return (q, k, v) if v else None


def offset_of(b, batch):
    """A q_offset, or None."""
    rng, offsets = b.rng, b.find(lambda x: x.dtype == "i32" and x.dims in ((batch,), ()) and x.mag < 20)
    if rng.random() < 0.1:
        return str(rng.choice([2, 5, -1])) if not b.ints or rng.random() < 0.7 else rng.choice(b.ints)[0]
    return b.use(rng.choice(offsets)).name if offsets and rng.random() < 0.15 else None


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
    offset = offset_of(b, q.dims[0])
    for x in qkv:
        b.use(x)
    rules = Rules(b, q.dims[0], q.dims[1], k.dims[1], q.dims[2], offset is not None)
    more = f", q_offset = {offset}" if offset is not None else ""
    mask = rules.mask()
    if rng.random() < 0.4:
        more += f", score = {rules.score()}"
    if rng.random() < 0.3:
        more += f", scale = {rng.choice(b.floats)[0] if b.floats and rng.random() < 0.6 else rng.choice(['0.3', '1.0', '-0.5'])}"
    if rng.random() < 0.15:
        made = b.find(lambda v: alike(v, q) and v.dims == (q.dims[2],) and v.mag < 10)
        more += f", sink = {b.use(rng.choice(made)).name if made and rng.random() < 0.5 else param(b, (q.dims[2],), b.float_type())}"
    if b.mask_argument and rng.random() < 0.5:
        mask = b.mask_argument if mask in ("causal", "full") or rng.random() < 0.5 else f"{b.mask_argument} and {mask}"
    elif b.loops and rng.random() < 0.2:
        mask = f"if {b.loops[-1]} % 2 == 0 then {mask} else {rng.choice(['causal', 'full'])}"
    b.assign(f"attention({q.name}, {k.name}, {v.name}, mask = {mask}{more})", q.dtype, q.dims[:3] + (v.dims[3],), v.mag)


# ---- losses

NAN = 1e9  # bound of what may be NaN: nothing computes with it


def ids_of(b, wanted=lambda v: True):
    """Labels whose rows something has."""
    has = lambda ids: b.find(lambda v: rows_of(v, ids))
    return b.pick(lambda v: v.dtype in ("i32", "i64") and v.dims and wanted(v) and has(v))


def rows_of(v, ids):
    return is_float(v) and 2 <= len(v.dims) <= 3 and is_const(v) and v.dims[:-1] == ids.dims and v.mag < 50 and not v.weak


def logits(b, ids):
    """Logits and their classes, often a linear that nothing else reads."""
    x = b.pick(lambda v: rows_of(v, ids))
    n = width(b)
    if b.rng.random() < 0.4 or not can_project(b, x, n):
        return x.name, x.dims[-1]
    text = linear_text(b, x, n)
    return b.rng.choice([text, text, f"3.0 * tanh({text} / 3.0)"]), n


@op(2)
def losses(b):
    ids = ids_of(b)
    if not ids:
        return
    text, n = logits(b, ids)
    keep = b.find(lambda v: v.dtype == "bool" and v.dims == ids.dims)
    labels, some = f"({ids.name} * 3 + 1) % {n}", keep and b.rng.random() < 0.5
    if some:
        labels = f"if {b.use(b.rng.choice(keep)).name} or {ids.name} == 0 then {labels} else -100"
    b.assign(f"cross_entropy({text}, {labels}{b.rng.choice(['', '', f', ignore = {n}' if not some else ''])})", "f32", (), NAN if some else 60)


@op(1)
def next_token_losses(b):
    """Where there is a next token."""
    ids = ids_of(b, lambda v: len(v.dims) == 2 and b.size(v.dims[b.row_dim(v)]) > 1)
    if not ids:
        return
    text, n = logits(b, ids)
    docs = b.find(lambda v: v.dtype in ("i32", "i64") and v.dims == ids.dims)
    some = b.rng.random() < 0.4
    more = f", doc = {b.use(b.rng.choice(docs)).name}" if some else ""
    b.assign(f"next_token_loss({text}, abs({ids.name}) % {n}{more})", "f32", (), NAN if some else 60)
