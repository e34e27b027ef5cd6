"""Random masks and scores, with captured tensors: declarations, and what stands at the attention."""
import re


class Rules:
    """|body| makes the entry; |dims| are those of q [B, S, H, ..] and k [B, T, K, ..]; |place|: queries have an offset, so q is no row of a tensor."""

    def __init__(self, body, rows, keys, heads, offset):
        self.body, self.rng, self.rows, self.keys, self.heads, self.offset = body, body.rng, rows, keys, heads, offset
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

    def table(self):
        """An int of the rule's own table, at any index."""
        c = self.capture(lambda v: v.dtype in ("i32", "i64", "bool") and len(v.dims) == 1 and isinstance(v.dims[0], int))
        if not c:
            return None
        index = self.rng.choice(["q + k", "abs(q - k)", "h + 3 * q", "b + k"])
        text = f"{c[0]}[({index}) % {c[1].dims[0]}]"
        return text if c[1].dtype != "bool" else f"(if {text} then 1 else 0)"

    def row_int(self):
        """An int of a query's or key's row, for both sides of a comparison."""
        c = self.capture(lambda v: v.dtype in ("i32", "i64") and v.dims == ("B", self.keys))
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
        kind = rng.randrange(12)
        if kind == 0:
            text = self.row_int() or text
        elif kind == 1:
            c = self.capture(lambda v: v.dtype == "bool" and v.dims == ("B", self.keys))
            text = f"{c[0]}[b, k]" if c else text
        elif kind == 2:
            c = self.capture(lambda v: v.dtype == "i32" and v.dims == ("B",))
            text = f"k < {w} + {c[0]}[b]" if c else text
        elif kind == 3:
            t = self.table()
            text = f"{t} != 1" if t else text
        elif kind == 4:
            c = self.capture(lambda v: v.dtype == "f32" and v.exact and v.dims == (self.heads,))
            text = f"{c[0]}[h] < 0.5" if c else text
        return f"({text})"

    def term(self):
        rng = self.rng
        kind = rng.randrange(9)
        if kind == 0:
            c = self.capture(lambda v: v.dtype == "f32" and v.dims == (self.heads,) and v.mag <= 10)
            return f"s + {c[0]}[h]" if c else "0.5 * s"
        if kind == 1:
            c = self.capture(lambda v: v.dtype == "f32" and v.dims == ("B", self.keys) and v.mag <= 10)
            return f"s - {c[0]}[b, k]" if c else "s + 0.25"
        if kind == 2:
            t = self.table()
            return f"s + 0.5 * {t}" if t else "s"
        if kind == 3:
            name = self.body.spec.name("slopes")
            self.declarations.append(f"const {name} = [{', '.join(str(0.5 ** (i % 6)) for i in range(self.heads))}]")
            return f"s - {name}[h] * 0.1 * abs(q - k)"
        return rng.choice(["2.0 * tanh(s / 2.0)", "s * (1.0 + 0.1 * (h % 3))", "(if k % 2 == 0 then s else 0.5 * s)", "s - 0.01 * abs(q - k)", "max(s, -1.0)", "s + sin(0.1 * (q + k))",
                           "s + 0.1 * float(b)"])

    def declare(self, kind, params, text):
        """Declares the rule; returns the text where it is used."""
        self.captures_used = [(n, v) for n, v in self.captures if re.search(rf"\b{n}\b", text)]
        self.captures = []
        name = self.body.spec.name(kind[0])
        used = [p for p in params if re.search(rf"\b{p}\b", text)] or [params[-1]]
        self.rng.shuffle(used)
        captured = ", ".join(f"{n}: {v.type()}" for n, v in self.captures_used)
        self.body.spec.declare(*self.declarations, f"{kind} {name}({', '.join(used)}{'; ' + captured if captured else ''}) = {text}")
        self.declarations = []
        return name if not captured else f"{name}({', '.join(v.name for _, v in self.captures_used)})"

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
