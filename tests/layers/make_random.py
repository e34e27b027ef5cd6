"""Random specs for check_random.py: values of a few shapes, put together by operations of every kind, in loops that carry several of them."""
import random

D, H = 16, 2
SHAPES = {"x": "[B, S, 16]", "h": "[B, S, 2, 8]", "r": "[B, S]", "p": "[B, 16]", "e": "[B, S, 8]", "g": "[16]"}


class Body:
    """Statements, and the names of each shape that they have made."""

    def __init__(self, rng, prefix):
        self.rng, self.prefix, self.n, self.lines, self.indent = rng, prefix, 0, [], "  "
        self.values = {shape: [] for shape in SHAPES}
        self.loops = []

    def fresh(self):
        self.n += 1
        return f"v{self.n}"

    def param(self):
        """A parameter's name, with the counters of the loops around it, all or none."""
        self.n += 1
        counters = "".join(f".{{{i}}}" for i in self.loops)
        return f"{self.prefix}.{self.n}{counters}"

    def pick(self, shape):
        """Any value, mostly one of the last few."""
        names = self.values[shape]
        return self.rng.choice(names[-3:] if self.rng.random() < 0.7 else names)

    def expression(self, shape):
        rng, x, p = self.rng, self.pick, self.param
        if shape == "x":
            return rng.choice([
                lambda: f"{x('x')} + 0.5 * {x('x')}",
                lambda: f"{x('x')} * tanh({x('r')})[..., _]",
                lambda: f"{x('x')} - {x('g')}",
                lambda: f"tanh({x('x')}) * tanh({x('x')})",
                lambda: f"rmsnorm({x('x')} + {x('x')}, name = \"{p()}\")",
                lambda: f"layernorm({x('x')}, name = \"{p()}\") * 0.5 + {x('x')}",
                lambda: f"linear({x('x')}, {D}, name = \"{p()}\", bias = true)",
                lambda: f"{x('x')} + linear({x('x')}, {D}, name = \"{p()}\")",
                lambda: (lambda n: f"silu(linear({n}, {D}, name = \"{p()}\")) * tanh(linear({n}, {D}, name = \"{p()}\"))")(x('x')),
                lambda: f"linear({x('e')}, {D}, name = \"{p()}\")",
                lambda: f"linear({x('x')}, weight = transpose(param(\"{p()}\", [{D}, {D}])) + 0.1)",
                lambda: f"merge({x('h')})",
                lambda: f"concat({x('e')}, {x('e')})",
                lambda: f"concat({x('e')}, {x('g')}[_, _, 0 : 8])",
                lambda: f"shift({x('x')}, {rng.choice([1, -1, 3, -7, 40])}, fill = 0.5)",
                lambda: f"softmax({x('x')} + {x('x')}) * 3.0",
                lambda: f"reshape({x('h')}, [B, S, {D}])",
                lambda: f"reshape(reshape({x('x')}, [B, 4 * S, 4]) * 0.5, [B, S, {D}])",
                lambda: f"{x('x')} - mean({x('x')}, dim = 1, keep = true)",
                lambda: f"{x('x')} * sigmoid({x('p')}[:, _])",
                lambda: f"{x('x')} * cos(0.1 * position({x('x')})[..., _])",
                lambda: f"if position({x('x')})[..., _] % 3 == 0 then {x('x')} else {x('x')}",
            ])()
        if shape == "h":
            return rng.choice([
                lambda: f"heads({x('x')}, {H})",
                lambda: f"reshape({x('x')}, [B, S, {H}, 8])",
                lambda: f"transpose(reshape({x('x')}, [B, S, 8, {H}]))",
                lambda: (lambda n: f"concat({n}[..., 4 : 8], {n}[..., 0 : 4])")(x('h')),
                lambda: f"shift({x('h')}, {rng.choice([1, -2])})",
                lambda: f"{x('p')}[iota({H}) % B][_, :, 0 : 8] * {x('h')}",
                lambda: f"heads(linear({x('x')}, {D}, name = \"{p()}\"), {H})",
                lambda: f"rope({x('h')}, theta = 100)",
                lambda: f"rope(heads(linear({x('x')}, {D}, name = \"{p()}\"), {H}), theta = 100, pairs = \"interleaved\")",
                lambda: f"rmsnorm({x('h')}, name = \"{p()}\")",
                lambda: f"attention({x('h')}, {x('h')}, {x('h')}, mask = causal)",
                lambda: f"attention(0.5 * {x('h')}, {x('h')}, {x('h')}, mask = full)",
                lambda: f"tanh({x('h')} * {x('h')})",
            ])()
        if shape == "r":
            return rng.choice([lambda: f"sum({x('x')}, dim = 2) * 0.1", lambda: f"{x('x')}[..., {rng.randrange(D)}]", lambda: f"tanh({x('r')} + {x('r')})",
                               lambda: f"softmax({x('r')})", lambda: f"shift({x('r')}, {rng.choice([2, -1])})", lambda: f"sum({x('h')}[..., 1 : 4], dim = 3)[..., {rng.randrange(H)}]",
                               lambda: f"0.01 * sum((position({x('r')}) % 5)[..., _] * iota({D}), dim = 2)",
                               lambda: f"sin(0.3 * position({x('r')}))"])()
        if shape == "p":
            return rng.choice([lambda: f"{x('x')}[:, {rng.randrange(2)}]", lambda: f"mean({x('x')}, dim = 1)", lambda: f"{x('x')}[:, -1]", lambda: f"mean({x('x')}[:, 1 :], dim = 1)", lambda: f"sum({x('x')} * {x('r')}[..., _], dim = 1) * 0.1",
                               lambda: f"tanh(linear({x('p')}, {D}, name = \"{p()}\"))", lambda: f"{x('p')} * {x('g')}"])()
        if shape == "e":
            first = rng.randrange(9)
            return rng.choice([lambda: f"{x('x')}[..., {first} : {first + 8}]", lambda: f"linear({x('x')}, 8, name = \"{p()}\")", lambda: f"sin({x('e')} * {x('e')})",
                               lambda: f"{x('h')}[:, :, {rng.randrange(H)}]", lambda: f"reshape({x('h')}[..., 2 : 6], [B, S, 8])", lambda: f"softmax({x('e')})"])()
        return rng.choice([lambda: f"param(\"{p()}\", [{D}])", lambda: f"{x('g')} * 0.5 + 0.1 * iota({D})"])()

    def add(self, shape):
        name, text = self.fresh(), self.expression(shape)
        self.lines.append(f"{self.indent}{name} = {text}")
        self.values[shape].append(name)

    def statements(self, n):
        for _ in range(n):
            if len(self.loops) < 2 and self.rng.random() < 0.15:
                self.repeat()
            else:
                self.add(self.rng.choices(list(SHAPES), [6, 4, 2, 1, 2, 1])[0])

    def repeat(self):
        carried = [(s, self.fresh()) for s in self.rng.choices(["x", "x", "h", "r", "e", "p"], k=self.rng.randrange(1, 4))]
        for shape, name in carried:
            self.lines.append(f"{self.indent}{name} = {self.pick(shape)}")
        kept = {shape: list(names) for shape, names in self.values.items()}
        for shape, name in carried:
            self.values[shape].append(name)
            kept[shape].append(name)
        i = f"i{len(self.loops)}"
        self.lines.append(f"{self.indent}repeat {self.rng.randrange(1, 4)} as {i} {{")
        self.loops.append(i)
        self.indent += "  "
        for shape, name in carried:  # what a loop carries must be read in it
            self.lines.append(f"{self.indent}{self.fresh()} = {name}")
            self.values[shape].append(f"v{self.n}")
        self.statements(self.rng.randrange(1, 6))
        temporaries = []
        for shape, name in carried:  # all new values from old ones, then assigned
            text = self.expression(shape) if self.rng.random() < 0.6 else self.pick(shape)
            temporaries.append((shape, name, self.fresh()))
            self.lines.append(f"{self.indent}{temporaries[-1][2]} = {text}")
        for shape, name, temporary in temporaries:
            scale = {"x": " * 0.5", "h": " * 0.5"}.get(shape, "") if self.rng.random() < 0.3 else ""
            self.lines.append(f"{self.indent}{name} = {temporary}{scale} + 0.0 * {name}" if self.rng.random() < 0.2 else f"{self.indent}{name} = {temporary}{scale}")
        self.loops.pop()
        self.indent = self.indent[2:]
        self.lines.append(f"{self.indent}}}")
        self.values = kept


def make_entry(rng, name):
    body = Body(rng, name)
    inputs = [("x", "x0"), ("x", "x1"), ("r", "r0")]
    for shape, value in inputs:
        body.values[shape].append(value)
    body.lines.append(f"  g0 = param(\"{name}.g0\", [{D}])")
    body.values["g"].append("g0")
    for shape in ("h", "p", "e"):
        name_, text = body.fresh(), {"h": f"heads(x0, {H})", "p": "x1[:, 0]", "e": "x0[..., 0 : 8]"}[shape]
        body.lines.append(f"  {name_} = {text}")
        body.values[shape].append(name_)
    body.statements(rng.randrange(4, 12))
    results = [(shape, body.rng.choice(names[-3:])) for shape, names in body.values.items() for _ in range(rng.randrange(0, 3)) if shape != "g"][:6] or [("x", body.pick("x"))]
    declared = ", ".join(f"o{i}: {SHAPES[s]}" for i, (s, _) in enumerate(results))
    arguments = ", ".join(f"{v}: {SHAPES[s]}" for s, v in inputs)
    return "\n".join([f"model {name}({arguments}) -> ({declared}) {{", *body.lines, "  return " + ", ".join(v for _, v in results), "}"])


def make_spec(seed, entries):
    rng = random.Random(seed)
    return "ulyc 1\nfree  B, S\ngrid  sp(S)\ndtype f32\n" + "\n".join(make_entry(rng, f"e{i}") for i in range(entries)) + "\n"


if __name__ == "__main__":
    import sys
    print(make_spec(int(sys.argv[1]), int(sys.argv[2])))
