"""Random masks and scores, with captured tensors and numbers: declarations, and what stands at the attention."""
import re

from random_values import INTS, Value


class Rules:
    """|body| makes the entry; |batch|, |rows|, |keys| and |heads| are dims of q [B, S, H, ..] and k [B, T, K, ..]; |offset|: queries have one, so q is no row of a tensor."""

    def __init__(self, body, batch, rows, keys, heads, offset):
        self.body, self.rng, self.batch, self.rows, self.keys, self.heads, self.offset = body, body.rng, batch, rows, keys, heads, offset
        self.captures, self.declarations = [], []

    def capture(self, wanted):
        """The name of a captured value in the body of the rule, and the value."""
        found = self.body.find(wanted)
        if not found:
            return None
        value = self.rng.choice(found)
        for name, have in self.captures:
            if have is value:
                return name, value
        self.captures.append((f"c{len(self.captures)}", value))
        return self.captures[-1]

    def number(self, dtype, numbers):
        """The name of a captured number: one of |numbers|, which may be another one in each iteration, or a value without dims. None where there is none."""
        if not numbers or self.rng.random() < 0.3:
            found = self.capture(lambda v: v.dtype == dtype and not v.dims and v.mag < 20 and (v.exact or dtype == "f32"))
            return found[0] if found else None
        text = self.rng.choice(numbers)[0]
        self.captures.append((f"c{len(self.captures)}", Value(self.rng, text, dtype, ())))
        return self.captures[-1][0]

    def table(self):
        """An int of the rule's own table, at any index."""
        c = self.capture(lambda v: not v.is_float() and len(v.dims) == 1 and isinstance(v.dims[0], int))
        if not c:
            return None
        index = self.rng.choice(["q + k", "abs(q - k)", "h + 3 * q", "b + k"])
        text = f"{c[0]}[({index}) % {c[1].dims[0]}]"
        return text if c[1].dtype != "bool" else f"(if {text} then 1 else 0)"

    def row_int(self):
        """An int of a query's or key's row, for both sides of a comparison."""
        c = self.capture(lambda v: v.dtype in INTS and v.dims == (self.batch, self.keys))
        if not c:
            return None
        if self.keys == self.rows and not self.offset:
            return f"{c[0]}[b, q] {self.rng.choice(['==', '<=', '>=', '!='])} {c[0]}[b, k]"
        return f"{c[0]}[b, k] {self.rng.choice(['!= 1', '< 2', '== q % 3'])}"

    def condition(self, depth):
        rng = self.rng
        if depth > 0 and rng.random() < 0.6:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return rng.choice([f"({a} and {b})", f"({a} or {b})", f"(not {a})", f"(if {a} then {b} else q >= k)"])
        w, n = rng.choice([1, 2, 4, 15, 16, 17, 128]), rng.choice([2, 3, 5])
        options = ["k <= q", f"0 <= q - k < {w}", f"q - k < {w}", f"k < {w}", f"abs(q - k) <= {w}", f"q // {w} == k // {w}", f"(q + k) % {n} != 0", f"hash(q, k) % {n} != 0",
                   f"k >= q", f"(h + k) % {n} > 0", f"(b + q) % {n} != 1", f"hash(b, h, q // 2) % {n} > 0", f"k % {n} == 0", "q < k", f"2 * k <= 3 * q + {w}", f"min(q, {w}) >= k"]
        text = rng.choice(options)
        kind = rng.randrange(15)
        if kind == 0:
            text = self.row_int() or text
        elif kind == 1:
            c = self.capture(lambda v: v.dtype == "bool" and v.dims == (self.batch, self.keys))
            text = f"{c[0]}[b, k]" if c else text
        elif kind == 2:
            c = self.capture(lambda v: v.dtype == "i32" and v.dims == (self.batch,))
            text = f"k < {w} + {c[0]}[b]" if c else text
        elif kind == 3:
            t = self.table()
            text = f"{t} != 1" if t else text
        elif kind == 4:
            c = self.capture(lambda v: v.is_float() and v.exact and v.dims in ((self.heads,), (self.batch, self.keys)))
            text = (f"{c[0]}[h] < 0.5" if len(c[1].dims) == 1 else f"{c[0]}[b, k] > -0.5") if c else text
        elif kind == 5:
            c = self.number("i32", self.body.ints)
            text = rng.choice([f"q - k < {w} + {c}", f"k <= q + {c}", f"(q + k) % {n} != {c} % {n}"]) if c else text
        elif kind == 6:  # of one captured tensor at an index that another one gives
            c, d = self.capture(lambda v: v.dtype in INTS and v.dims == (self.batch, self.keys)), self.capture(lambda v: v.dtype in ("i32", "i64") and len(v.dims) == 1 and isinstance(v.dims[0], int))
            text = f"{d[0]}[abs({c[0]}[b, k]) % {d[1].dims[0]}] <= 1" if c and d else text
        elif kind == 7 and not self.offset:
            c = self.capture(lambda v: v.dtype == "bool" and v.dims in ((self.rows, self.keys), (self.batch, self.rows, self.keys)))
            text = f"{c[0]}[{'b, ' * (len(c[1].dims) == 3)}q, k]" if c else text
        return f"({text})"

    def term(self):
        rng = self.rng
        kind = rng.randrange(12)
        if kind == 5 and not self.offset:
            c = self.capture(lambda v: v.is_float() and v.dims in ((self.rows, self.keys), (self.batch, self.rows, self.keys), (self.heads, self.rows, self.keys)) and v.mag <= 10)
            return f"s + {c[0]}[{'' if len(c[1].dims) == 2 else 'b, ' if c[1].dims[0] == self.batch else 'h, '}q, k]" if c else "s"
        if kind == 0:
            c = self.capture(lambda v: v.is_float() and v.dims == (self.heads,) and v.mag <= 10)
            return f"s + {c[0]}[h]" if c else "0.5 * s"
        if kind == 1:
            c = self.capture(lambda v: v.is_float() and v.dims == (self.batch, self.keys) and v.mag <= 10)
            return f"s - {c[0]}[b, k]" if c else "s + 0.25"
        if kind == 2:
            t = self.table()
            return f"s + 0.5 * {t}" if t else "s"
        if kind == 3:
            name = self.body.spec.name("slopes")
            self.declarations.append(f"const {name} = [{', '.join(str(0.5 ** (i % 6)) for i in range(self.heads))}]")
            return f"s - {name}[h] * 0.1 * abs(q - k)"
        if kind == 4:
            c = self.number("f32", self.body.floats)
            return rng.choice([f"s * {c}", f"s + {c} * sin(0.1 * k)"]) if c else "s"
        return rng.choice(["2.0 * tanh(s / 2.0)", "s * (1.0 + 0.1 * (h % 3))", "(if k % 2 == 0 then s else 0.5 * s)", "s - 0.01 * abs(q - k)", "max(s, -1.0)", "s + sin(0.1 * (q + k))",
                           "s + 0.1 * float(b)"])

    def declare(self, kind, params, text):
        """Declares the rule; returns the text where it is used."""
        captures, self.captures = [(n, v) for n, v in self.captures if re.search(rf"\b{n}\b", text)], []
        name = self.body.spec.name(kind[0])
        used = [p for p in params if re.search(rf"\b{p}\b", text)] or [params[-1]]
        self.rng.shuffle(used)
        captured = ", ".join(f"{n}: {v.type()}" for n, v in captures)
        self.body.spec.declare(*self.declarations, f"{kind} {name}({', '.join(used)}{'; ' + captured if captured else ''}) = {text}")
        self.declarations = []
        return name if not captured else f"{name}({', '.join(v.name for _, v in captures)})"

    def mask(self):
        rng = self.rng
        if rng.random() < 0.35:
            return rng.choice(["causal", "causal", "full"])
        one = lambda: self.declare("mask", "bhqk", self.condition(rng.choice([0, 0, 1, 1, 2, 3])))
        if rng.random() < 0.2:
            return rng.choice([f"{one()} and causal", f"causal or {one()}", f"not {one()}", f"{one()} and not {one()}"])
        return one()

    def score(self):
        one = lambda: self.declare("score", "shqkb", self.term())
        return one() if self.rng.random() < 0.7 else f"{one()} then {one()}"
