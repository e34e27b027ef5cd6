"""Values of random specs, and bodies: statements over values in scope. random_ops.py and random_layers.py have what makes them."""
import re

HALVES = "bf16", "f16"
FLOATS = "f32", *HALVES
INTS = "i32", "i64", "u8"


# ---- dims: a number, or text: S, 2 * S, S - 1, 3 * T + 2

def dim(mul, symbol, add):
    text = symbol if mul == 1 else f"{mul} * {symbol}"
    return f"{text} {'+' if add > 0 else '-'} {abs(add)}" if add else text


def terms(d):
    """(mul, symbol, add) of a dim that is no number."""
    mul, symbol, sign, add = re.fullmatch(r"(?:(\d+) \* )?([A-Z])(?: ([+-]) (\d+))?", d).groups()
    return int(mul or 1), symbol, int(f"{sign or ''}{add or 0}")


def renamed(d, names):
    """With symbols by other names."""
    if isinstance(d, int):
        return d
    mul, symbol, add = terms(d)
    return dim(mul, names.get(symbol, symbol), add)


class Value:
    """|mag|: bound of what it holds; |exact|: without rounding errors; |limit|: ints are in [0, limit); |weight|: of parameters alone; |weak|: and its dtype gives way."""

    weight = weak = False

    def __init__(self, rng, name, dtype, dims, mag=1.0, exact=False, limit=0):
        self.rng, self.name, self.dtype, self.dims, self.mag, self.exact, self.limit = rng, name, dtype, tuple(dims), mag, exact, limit

    def type(self):
        return f"{self.dtype}[{', '.join(str(d) for d in self.dims)}]"

    def named(self, name):
        return Value(self.rng, name, self.dtype, self.dims, self.mag, self.exact, self.limit)

    def is_float(self):
        return self.dtype in FLOATS

    def is_half(self):
        return self.dtype in HALVES

    def is_int(self):
        return self.dtype in INTS


class Body:
    """Statements of an entry, a layer or a repeat. |floats| and |ints|: static numbers that are other ones in each iteration or call, and bounds of them."""

    def __init__(self, spec, prefix, sizes):
        self.spec, self.rng, self.params, self.sizes = spec, spec.rng, prefix, sizes
        self.lines, self.indent, self.values, self.loops, self.used = [], "  ", [], [], set()
        self.floats, self.ints = [], []
        self.mask_argument, self.shared = None, []

    # ---- names

    def fresh(self):
        self.spec.n += 1
        return f"v{self.spec.n}"

    def param(self):
        """A parameter's name in quotes, with the counters of the loops around it."""
        self.spec.n += 1
        counters = "".join(f".{{{i}}}" for i in self.loops)
        return f"\"{self.params}.{self.spec.n}{counters}\""

    def float_type(self):
        """The dtype of what has none of an operand: mostly that of the spec."""
        return self.spec.dtype if self.rng.random() < 0.8 else self.rng.choice(FLOATS)

    # ---- sizes

    def size(self, d):
        if isinstance(d, int):
            return d
        mul, symbol, add = terms(d)
        return mul * self.sizes[symbol] + add

    def elements(self, dims):
        n = 1
        for d in dims:
            n *= self.size(d)
        return n

    def row_dim(self, v):
        """What position counts and shift moves: the last dim that is not a number; of [B, 4] the second, unless the grid splits B. None where there are no dims."""
        rows = [i for i, d in enumerate(v.dims) if not isinstance(d, int)][-1:] or [0]
        if rows == [0] and len(v.dims) > 1 and (isinstance(v.dims[0], int) or terms(v.dims[0])[1] not in self.spec.grid):
            return 1
        return rows[0] if v.dims else None

    def pay(self, cost):
        """Whether so much work is still allowed: the reference goes number by number."""
        if self.spec.cost + cost > self.spec.budget:
            return False
        self.spec.cost += cost
        return True

    # ---- values

    def find(self, wanted):
        return [v for v in self.values if wanted(v)]

    def pick(self, wanted):
        """One of them, mostly one of the last, or one that nobody has used."""
        found = self.find(wanted)
        if not found:
            return None
        unused = [v for v in found if v.name not in self.used]
        value = self.rng.choice(unused if unused and self.rng.random() < 0.5 else found[-4:] if self.rng.random() < 0.6 else found)
        return self.use(value)

    def use(self, value):
        self.used.add(value.name)
        return value

    def add(self, value):
        self.values.append(value)
        return value

    def line(self, text):
        self.lines.append(self.indent + text)

    def result(self, dtype, dims, mag, exact=False, limit=0):
        """A value that the next line makes."""
        return Value(self.rng, self.fresh(), dtype, dims, mag, exact, limit)

    def assign(self, text, dtype, dims, mag, exact=False, limit=0):
        value = self.result(dtype, dims, mag, exact, limit)
        used = [v for v in self.values if re.search(rf"\b{v.name}\b", text)]
        value.weight = all(v.weight for v in used) and (bool(used) or "param(" in text) and all(isinstance(d, int) for d in dims)
        value.weak = value.weight and all(v.weak for v in used) and not re.search(r"\b(cast|iota|position)\(", text)
        self.line(f"{value.name} = {text}")
        return self.add(value)

    def same(self, text, v, dims=None):
        """What moves the elements of |v|, and does nothing to them."""
        return self.assign(text, v.dtype, v.dims if dims is None else dims, v.mag, v.exact, v.limit)
