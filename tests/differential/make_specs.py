"""Random valid specs: `make_specs.py SEED` prints one. A seed gives one spec, of several entries, and the sizes at which it is run."""
import random
import sys

import random_ops
from random_scalars import Scalars
from random_values import Body, Value

ENTRIES = 6
ROWS = [1, 2, 3, 5, 7, 13, 15, 16, 17, 31, 33]
MANY_ROWS = [64, 95, 96, 97, 127, 128, 129, 257, 287, 288, 289]
SMALL_WIDTHS, SMALL_HEADS = [1, 2, 3, 4, 5, 8, 12, 16, 24], [1, 2, 3, 4]


class Spec:
    def __init__(self, seed, entries=ENTRIES):
        self.seed, self.rng, self.n, self.cost, self.budget = seed, random.Random(seed), 0, 0, 0
        self.declarations, self.functions, self.layers = [], [], []
        rng = self.rng
        many = rng.random() < 0.25
        self.sizes = {"B": rng.choice([1, 1, 2] if many else [1, 2, 2, 3, 5]), "S": rng.choice(MANY_ROWS if many else ROWS), "T": rng.choice(MANY_ROWS if many and rng.random() < 0.3 else ROWS)}
        self.grid = rng.choice(["sp(S)", "sp(S)", "sp(S, T)", "sp(S, T), dp(B)", "dp(B), sp(S)"])
        self.level = rng.choice(["x86-64-v3", "x86-64-v4"])
        for _ in range(rng.randrange(3)):
            self.add_function()
        self.entries = [self.make_entry(f"e{i}") for i in range(entries)]

    def name(self, prefix):
        self.n += 1
        return f"{prefix}{self.n}"

    def declare(self, *lines):
        self.declarations += lines

    def text(self, entries=None):
        head = ["ulyc 1", "free  B, S, T", f"grid  {self.grid}", "dtype f32"]
        return "\n".join(head + self.declarations + [e.text() for e in entries or self.entries]) + "\n"

    def at(self):
        return [f"{k}={v}" for k, v in self.sizes.items()]

    def add_function(self):
        name, n = self.name("f"), self.rng.choice([1, 2])
        params = ["xyz"[i] for i in range(n)]
        text, mag = Scalars(self.rng, [(p, Value(self.rng, p, "f32", (), 4.0)) for p in params]).floats(2)
        text = f"{text} + 0.0 * ({' + '.join(params)})" if mag <= 20 else f"tanh({text})"
        self.declare(f"fn {name}({', '.join(params)}) = {text}")
        self.functions.append((name, n, min(mag, 20)))

    # ---- inputs

    def inputs(self, b):
        """A few tensors of everyday shapes, and now and then of odd ones."""
        rng = self.rng
        d, h = rng.choice(SMALL_WIDTHS), rng.choice(SMALL_HEADS)
        float_shapes = [("B", "S", d)] * 4 + [("B", "S", h, d), ("B", "S", h * d), ("S", d), ("B", "S"), ("B", d), ("B", "T", d), ("B", "T", d), (d,), ("B", "2 * S", d), ("B", d, "S"), (3, "S", d),
                                              ("B", "T", h, d), (), ("B", 2, d), ("T", d), ("B", "S", "T")]
        int_shapes = [("B", "S"), ("B", "S"), ("B", "T"), ("B",), ("S",), (7,), ()]
        for i in range(rng.randrange(1, 4)):
            b.add(Value(rng, f"x{i}", "f32", rng.choice(float_shapes), 1.0, True))
        for i in range(rng.randrange(0, 3)):
            b.add(Value(rng, f"i{i}", rng.choice(["i32", "i32", "i64"]), rng.choice(int_shapes), 3, True, 3))
        for i in range(rng.randrange(0, 2)):
            b.add(Value(rng, f"b{i}", "bool", rng.choice(int_shapes[:5]), 1, True, 2))
        return list(b.values)

    # ---- statements that have statements

    def statements(self, b, n):
        for _ in range(n):
            roll = self.rng.random()
            if roll < 0.08 and len(b.loops) < 2 and b.values:
                self.repeat(b)
            elif roll < 0.14:
                self.call_layer(b)
            else:
                random_ops.random(b)

    def repeat(self, b):
        """Carries some values: read first, and kept in their type and in bounds."""
        rng = self.rng
        first = [v for v in (b.pick(lambda v: v.dtype == "f32" and v.mag < 50) for _ in range(rng.randrange(1, 4))) if v]
        if not first:
            return
        carried = [b.assign(v.name, "f32", v.dims, max(v.mag, 4.0)) for v in first]
        outside, i = list(b.values), self.name("n")
        b.line(f"repeat {rng.randrange(1, 4)} as {i} {{")
        b.loops.append(i)
        b.indent += "  "
        budget, self.budget = self.budget, self.cost + (self.budget - self.cost) / 3
        read = [b.assign(v.name, "f32", v.dims, v.mag) for v in carried]
        for v in carried:
            b.values.remove(v)
        self.statements(b, rng.randrange(1, 6))
        new = []
        for v, old in zip(carried, read):
            candidates = b.find(lambda x: x.dtype == "f32" and x.dims == v.dims and x.mag < 50)
            x = b.use(rng.choice(candidates)) if candidates else old
            forms = [f"tanh({x.name})", f"0.5 * {x.name} + 0.5 * {old.name}" if x.mag <= v.mag else f"tanh({x.name})", f"sin({x.name}) + {f'(if {i} % 2 == 0 then 0.5 else -0.25)'}"]
            if x.mag <= v.mag:
                forms += [x.name, x.name, f"{x.name} / ({i} + 1.0)"]
            new.append(b.assign(rng.choice(forms), "f32", v.dims, v.mag))
        for v, x in zip(carried, new):
            b.line(f"{v.name} = {b.use(x).name}")
        b.loops.pop()
        b.indent = b.indent[2:]
        b.line("}")
        b.values = outside
        self.budget = budget

    def call_layer(self, b):
        """Calls a layer, a new one or one that is there: its S may be T here."""
        rng = self.rng
        if self.layers and rng.random() < 0.5:
            layer = rng.choice(self.layers)
        else:
            layer = self.make_layer()
            if not layer:
                return
        name, dims, statics, result, cost, mag = layer
        rename = rng.choice([{}, {"S": "T"}])
        turned = tuple(rename.get(d, d) for d in dims)
        x = b.pick(lambda v: v.dtype == "f32" and v.mag <= 4 and v.dims == turned)
        if not x or not b.pay(cost * 2):
            return
        args = [x.name]
        for kind in statics:
            counter = b.loops[-1] if b.loops and rng.random() < 0.6 else None
            args.append({"int": f"{counter} + 1" if counter else str(rng.randrange(1, 4)), "float": f"1.0 / ({counter} + 1.0)" if counter else rng.choice(["0.5", "1.0", "-0.25"]),
                         "mask": f"if {counter} % 2 == 0 then causal else full" if counter else rng.choice(["causal", "full"]), "bool": rng.choice(["true", "false"])}[kind])
        b.assign(f"{name}({', '.join(args)}, name = {b.param()})", "f32", tuple(rename.get(d, d) for d in result), mag)

    def make_layer(self):
        rng = self.rng
        dims = rng.choice([("B", "S", rng.choice(SMALL_WIDTHS)), ("B", "S", rng.choice(SMALL_WIDTHS)), ("B", "S", rng.choice(SMALL_HEADS), 8)])
        statics = rng.sample(["int", "float", "mask", "bool"], rng.randrange(3))
        name, before, budget = self.name("layer"), self.cost, self.budget
        b = Body(self, "p", {**self.sizes, "T": min(self.sizes["S"], self.sizes["T"]), "S": min(self.sizes["S"], self.sizes["T"])})
        b.in_mask_argument = "m" if "mask" in statics else None
        self.budget = self.cost + (self.budget - self.cost) / 4
        x = b.add(Value(rng, "x", "f32", dims, 4.0))
        scalars = {"int": "n", "float": "f", "bool": "c"}
        for _ in range(rng.randrange(1, 5)):
            random_ops.random(b)
        if "float" in statics:
            b.assign(f"f * {x.name} + 0.1", "f32", dims, 5)
        if "int" in statics:
            b.assign(f"{x.name} * (1.0 / n)", "f32", dims, 4)
        results = b.find(lambda v: v.dtype == "f32" and "T" not in v.dims and v.mag < 50 and v is not x)
        self.budget = budget
        if not results or len(self.layers) > 6:
            return None
        y = rng.choice(results[-3:])
        text = f"if c then {y.name} else tanh({y.name})" if "bool" in statics else y.name
        arguments = [f"x: {x.type()}"] + [f"{scalars.get(s, 'm')}: {s}" for s in statics]
        self.declare(f"layer {name}({', '.join(arguments)}) -> {y.type()} {{", *b.lines, f"  return {text}", "}")
        self.layers.append((name, dims, statics, y.dims, self.cost - before, max(y.mag, 1)))
        return self.layers[-1]

    # ---- entries

    def make_entry(self, name):
        rng = self.rng
        self.cost, self.budget = 0, 2e7
        b = Body(self, name, self.sizes)
        b.in_mask_argument = None
        inputs = self.inputs(b)
        self.statements(b, rng.randrange(3, 14))
        computed = [v for v in b.values if v not in inputs]
        results = [v for v in computed if v.name not in b.used]
        if not results:
            results = [computed[-1] if computed else b.assign(f"{inputs[0].name} * 2.0", "f32", inputs[0].dims, 2)]
        if computed and rng.random() < 0.2:
            results.append(rng.choice(computed))
        return Entry(name, inputs, b.lines, list(dict.fromkeys(results))[-6:])


class Entry:
    def __init__(self, name, inputs, lines, results):
        self.name, self.inputs, self.lines, self.results = name, inputs, lines, results

    def text(self):
        arguments = ", ".join(f"{v.name}: {v.type()}" for v in self.inputs)
        results = ", ".join(f"o{i}: {v.type()}" for i, v in enumerate(self.results))
        return "\n".join([f"model {self.name}({arguments}) -> ({results}) {{", *self.lines, "  return " + ", ".join(v.name for v in self.results), "}"])


if __name__ == "__main__":
    spec = Spec(int(sys.argv[1]))
    print(f"# {' '.join(spec.at())} {spec.level}", spec.text(), sep="\n", end="")
