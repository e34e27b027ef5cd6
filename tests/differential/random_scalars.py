"""Random elementwise expressions over tensors, as text. Every number is bounded, so that nothing overflows or is NaN, and a choice is only made by what has no rounding errors:
ints, bools, and floats that nothing has computed."""
from random_values import HALVES

LARGE = 30.0  # where products and sums are pressed together again


def fit(value, dims):
    """The text that makes |value| stretch to |dims|, or None: missing dims are inserted, `r[:, _]`."""
    if not value.dims:
        return value.name
    parts, have = [], list(value.dims)
    for d in reversed(dims):
        if have and (have[-1] == d or have[-1] == 1):
            have.pop()
            parts.append(":")
        else:
            parts.append("_")
    if have:
        return None
    parts.reverse()
    while parts and parts[0] == "_":  # leading dims need not be there
        parts.pop(0)
    if "_" not in parts:
        return value.name
    while parts[-1] == ":":
        parts.pop()
    if len(parts) < len(value.dims) + parts.count("_") and value.rng.random() < 0.3:
        return f"{value.name}[{', '.join(parts)}, ...]"
    return f"{value.name}[{', '.join(parts)}]"


class Scalars:
    """Makes expressions whose leaves are |leaves|: (text, value) that stretch to the result. |dtype|: of its floats; |floats|, |ints|: static numbers (Body)."""

    def __init__(self, rng, leaves, functions=(), dtype="f32", floats=(), ints=()):
        self.rng, self.leaves, self.functions, self.dtype, self.static_floats, self.static_ints = rng, leaves, functions, dtype, floats, ints
        self.used, self.wide = set(), False  # wide: the ints may not be i32

    def leaf(self, wanted):
        found = [(t, v) for t, v in self.leaves if wanted(v)]
        if not found:
            return None
        text, value = self.rng.choice(found)
        self.used.add(value.name)
        self.wide |= value.dtype == "i64"
        return text, value

    # Each returns the text and a bound of its magnitude.

    def number(self):
        if self.static_floats and self.rng.random() < 0.5:
            return self.rng.choice(self.static_floats)
        c = self.rng.choice([0.5, 0.25, -0.5, 1.0, 1.5, 2.0, -1.0, 0.1, 3.0, 0.0, 1e-3])
        return (f"{c}" if c >= 0 else f"({c})"), abs(c)

    def floats(self, depth):
        rng = self.rng
        leaf = self.leaf(lambda v: v.is_float()) if rng.random() < 0.85 else None
        if depth <= 0 or (leaf and rng.random() < 0.15):
            if leaf:
                return leaf[0], leaf[1].mag
            if rng.random() < 0.5:
                i = self.ints(0)
                if i:
                    text = f"0.1 * ({i[0]})" if rng.random() < 0.7 else f"float({i[0]}) / 8"
                    return f"cast({text}, {self.dtype})" if self.dtype in HALVES else text, 0.2 * i[1]
            return self.number()
        kind = rng.randrange(13)
        if kind == 12:
            special = self.special()
            if special:
                return special
        if kind < 4:
            return self.unary(depth)
        if kind < 9:
            return self.binary(depth)
        if kind == 9 and self.functions:
            name, n, mag = rng.choice(self.functions)
            args = [self.small(depth - 1) for _ in range(n)]
            return f"{name}({', '.join(a for a, _ in args)})", mag
        test = self.bools(depth - 1)
        if not test:
            return self.unary(depth)
        a, b = self.floats(depth - 1), self.floats(depth - 1)
        return f"(if {test} then {a[0]} else {b[0]})", max(a[1], b[1])

    def special(self):
        """Of what has no rounding errors, or of a list at an index."""
        rng, leaf = self.rng, self.leaf(lambda v: v.is_float() and v.exact and v.mag <= 2)
        if leaf and rng.random() < 0.6:
            return rng.choice([(f"({leaf[0]} % 0.5)", 0.5), (f"({leaf[0]} // 0.25)", 9.0), (f"(-{leaf[0]} % -0.75)", 0.75)])
        i = self.ints(1)
        if not i:
            return None
        items = f"[{', '.join(str(rng.choice([0.5, -0.25, 1.5, 0.125, 1.0])) for _ in range(rng.randrange(1, 6)))}]"
        text = f"{items}[abs({i[0]})]"  # beyond the end it is the last one
        return (f"cast({text}, {self.dtype})" if self.dtype in HALVES else text), 1.5

    def small(self, depth):
        text, mag = self.floats(depth)
        return (text, mag) if mag <= 4.0 else self.rng.choice([(f"tanh({text})", 1.0), (f"sin({text})", 1.0), (f"clamp({text}, -2.0, 3.0)", 3.0)])

    def unary(self, depth):
        rng = self.rng
        x, m = self.floats(depth - 1)
        s, sm = self.small(depth - 1)
        return rng.choice([
            lambda: (f"tanh({x})", 1.0), lambda: (f"sigmoid({x})", 1.0), lambda: (f"sin({s})", 1.0), lambda: (f"cos({s})", 1.0), lambda: (f"erf({x})", 1.0),
            lambda: (f"exp(min({x}, 2.0))", 7.4), lambda: (f"exp2({s})", 2.0 ** sm), lambda: (f"log(abs({x}) + 0.5)", 4.0), lambda: (f"log2(0.5 + abs({x}))", 6.0),
            lambda: (f"sqrt(abs({x}) + 0.25)", m + 1.0), lambda: (f"rsqrt(abs({x}) + 0.25)", 2.0), lambda: (f"abs({x})", m), lambda: (f"(-{x})", m),
            lambda: (f"silu({x})", m), lambda: (f"gelu({x})", m), lambda: (f"gelu_tanh({s})", sm), lambda: (f"relu({x})", m), lambda: (f"softplus({x})", m + 1.0),
            lambda: (f"({s}) ** 2", sm * sm), lambda: (f"(abs({s}) + 0.5) ** 1.5", (sm + 0.5) ** 1.5), lambda: (f"clamp({x}, -1.5, 1.0)", 1.5)])()

    def binary(self, depth):
        rng = self.rng
        (a, m), (b, n) = self.floats(depth - 1), self.floats(depth - 1)
        if m + n > LARGE or m * n > LARGE:
            return rng.choice([(f"tanh({a}) * tanh({b})", 1.0), (f"0.01 * ({a}) + {b}", 0.01 * m + n) if n <= LARGE else (f"tanh({a}) - sigmoid({b})", 2.0)])
        return rng.choice([lambda: (f"({a} + {b})", m + n), lambda: (f"({a} - {b})", m + n), lambda: (f"({a}) * ({b})", m * n), lambda: (f"({a}) / (abs({b}) + 0.5)", 2.0 * m),
                           lambda: (f"min({a}, {b})", max(m, n)), lambda: (f"max({a}, {b})", max(m, n)), lambda: (f"({a} + 0.5 * {b})", m + n)])()

    def ints(self, depth):
        """None where there is no int among the leaves."""
        rng = self.rng
        leaf = self.leaf(lambda v: v.is_int())
        exact = self.leaf(lambda v: v.is_float() and v.exact and v.mag <= 2) if rng.random() < 0.1 else None
        if exact:
            self.wide = True
            return rng.choice([(f"floor(4.0 * {exact[0]})", 9), (f"ceil({exact[0]})", 3), (f"int(8.0 * {exact[0]})", 17)])
        if not leaf:
            return None
        x, m = leaf[0], leaf[1].mag
        if self.static_ints and rng.random() < 0.3:
            n = rng.choice(self.static_ints)
            self.wide |= n[0].isupper()  # sizes are i64
            x, m = rng.choice([(f"({x} + {n[0]})", m + n[1]), (f"({x} * {n[0]})", m * n[1])])
        if depth <= 0:
            return x, m
        if rng.random() < 0.4:
            other = self.ints(depth - 1)
            c = rng.choice([2, 3, 5, 7, 16])
            if rng.random() < 0.1:
                self.wide = True
                return rng.choice([f"(hash({x}, {other[0]}) % {c})", f"(hash({other[0]}, 3, {x}) % {c})"]), c
            return rng.choice([lambda: (f"({x} + {other[0]})", m + other[1]), lambda: (f"({x} - {other[0]})", m + other[1]), lambda: (f"min({x}, {other[0]})", max(m, other[1])),
                               lambda: (f"max({x}, {other[0]})", max(m, other[1])), lambda: (f"({x}) % {c} * ({other[0]}) // {c}", m + other[1] * c)])()
        c = rng.choice([2, 3, 5, 7, 16])
        test = self.bools(0) if rng.random() < 0.3 else None
        if test:
            return f"(if {test} then {x} else {c})", max(m, c)
        return rng.choice([lambda: (f"({x} + {c})", m + c), lambda: (f"({c} * {x})", c * m), lambda: (f"({x} // {c})", m), lambda: (f"({x} - {c}) % {c}", c),
                           lambda: (f"abs({x} - {c})", m + c), lambda: (f"({x}) % -{c}", c)])() if m < 1e6 else (f"({x}) % {c}", c)

    def index(self, depth, limit):
        """An int in [0, limit)."""
        i = self.ints(depth)
        return None if not i else f"({i[0]}) % {limit}"

    def bools(self, depth):
        wide = self.wide  # what is compared does not make the result wide
        text = self.condition(depth)
        self.wide = wide
        return text

    def condition(self, depth):
        rng = self.rng
        kind = rng.randrange(5)
        if kind == 0 and depth > 0:
            a, b = self.bools(depth - 1), self.bools(depth - 1)
            return None if not a or not b else f"({a} {rng.choice(['and', 'or'])} {b})"
        if kind == 1:
            leaf = self.leaf(lambda v: v.dtype == "bool")
            if leaf:
                return rng.choice([leaf[0], f"(not {leaf[0]})"])
        if kind == 2:
            leaf = self.leaf(lambda v: v.is_float() and v.exact)
            if leaf:
                return rng.choice([f"({leaf[0]} < {self.number()[0]})", f"(-0.5 <= {leaf[0]} < 0.25)", f"({leaf[0]} != 0.5)"])
        i = self.ints(depth)
        if not i:
            return None
        c = rng.randrange(5)
        return rng.choice([f"({i[0]} % 3 == {c % 3})", f"({i[0]} > {c})", f"(1 <= {i[0]} < {c + 2})", f"({i[0]} != {c})"])
