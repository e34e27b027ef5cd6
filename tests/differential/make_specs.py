"""Random valid specs: `make_specs.py SEED` prints one. A seed gives one spec, of several entries, and the sizes at which it is run."""
import random
import sys

import random_layers  # noqa: F401, its statements join those of random_ops
import random_ops
from random_scalars import Scalars
from random_values import Body, Value, renamed

ENTRIES = 6
ROWS = [1, 2, 3, 5, 7, 13, 15, 16, 17, 31, 33]
MANY_ROWS = [64, 95, 96, 97, 127, 128, 129, 257, 287, 288, 289]
SMALL_WIDTHS, SMALL_HEADS = [1, 2, 3, 4, 5, 8, 12, 16, 24], [1, 2, 3, 4]


class Spec:
    def __init__(self, seed, entries=ENTRIES):
        self.seed, self.rng, self.n, self.cost, self.budget = seed, random.Random(seed), 0, 0, 0
        self.declarations, self.functions, self.layers = [], [], []
        rng = self.rng
        self.dtype = rng.choice(["f32", "f32", "f32", "bf16", "bf16", "f16"])
        many = rng.random() < 0.25
        self.sizes = {"B": rng.choice([1, 1, 2] if many else [1, 2, 2, 3, 5]), "S": rng.choice(MANY_ROWS if many else ROWS), "T": rng.choice(MANY_ROWS if many and rng.random() < 0.3 else ROWS)}
        self.larger = {k: v + rng.choice([0, 0, 1, 2, 3, 5]) for k, v in self.sizes.items()}  # where the same program runs too
        self.grid = rng.choice(["sp(S)", "sp(S)", "sp(S, T)", "sp(S, T)", "sp(S, T), dp(B)", "dp(B), sp(S)", "sp(S), tp(T)", "dp(B), sp(S), tp(T)"])
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
        head = ["ulyc 1", "free  B, S, T", f"grid  {self.grid}", f"dtype {self.dtype}"]
        return "\n".join(head + self.declarations + [e.text() for e in entries or self.entries]) + "\n"

    def at(self, sizes=None):
        return [f"{k}={v}" for k, v in (sizes or self.sizes).items()]

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
                                              ("B", "T", h, d), (), ("B", 2, d), ("T", d), ("B", "S", "T"), ("S", "S"), (h, "S", "S"), (h,)]
        int_shapes = [("B", "S"), ("B", "S"), ("B", "T"), ("B",), ("S",), (7,), (), ("B", "S", d)]
        for i in range(rng.randrange(1, 4)):
            b.add(Value(rng, f"x{i}", b.float_type(), rng.choice(float_shapes), 1.0, True))
        for i in range(rng.randrange(0, 3)):
            b.add(Value(rng, f"i{i}", rng.choice(["i32", "i32", "i64", "u8"]), rng.choice(int_shapes), 3, True, 3))
        for i in range(rng.randrange(0, 2)):
            b.add(Value(rng, f"b{i}", "bool", rng.choice(int_shapes[:5] + [("S", "S"), ("B", "S", "S")]), 1, True, 2))
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
        first = [v for v in (b.pick(lambda v: v.is_float() and v.mag < 50) for _ in range(rng.randrange(1, 4))) if v]
        if not first:
            return
        carried = [b.assign(v.name, v.dtype, v.dims, max(v.mag, 4.0)) for v in first]
        outside, numbers, i, count = list(b.values), (list(b.floats), list(b.ints)), self.name("n"), rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 5])
        b.line(f"repeat {count} as {i} {{")
        b.loops.append(i)
        b.indent += "  "
        self.add_numbers(b, i, count)
        budget, self.budget = self.budget, self.cost + (self.budget - self.cost) / 3
        read = [b.assign(v.name, v.dtype, v.dims, v.mag) for v in carried]
        for v in carried:
            b.values.remove(v)
        for v in carried + read:
            v.weight = v.weak = False
        self.statements(b, rng.randrange(1, 6))
        new = []
        for v, old in zip(carried, read):
            candidates = b.find(lambda x: x.dtype == v.dtype and x.dims == v.dims and x.mag < 50 and not x.weak)
            x = b.use(rng.choice(candidates)) if candidates else old
            forms = [f"tanh({x.name})", f"0.5 * {x.name} + 0.5 * {old.name}" if x.mag <= v.mag else f"tanh({x.name})", f"sin({x.name}) + {f'(if {i} % 2 == 0 then 0.5 else -0.25)'}"]
            if x.mag <= v.mag:
                forms += [x.name, x.name, f"{x.name} / ({i} + 1.0)"]
            new.append(b.assign(rng.choice(forms), v.dtype, v.dims, v.mag))
        for v, x in zip(carried, new):
            b.line(f"{v.name} = {b.use(x).name}")
        b.loops.pop()
        b.indent = b.indent[2:]
        b.line("}")
        b.values, (b.floats, b.ints) = outside, numbers
        self.budget = budget

    def add_numbers(self, b, i, count):
        """What the counter |i| of a loop makes."""
        b.floats += [(f"(1.0 / ({i} + 1))", 1.0), (f"(0.5 * {i} - 0.25)", 1.25), (f"(if {i} == 1 then 0.75 else -0.5)", 0.75)]
        b.ints += [(i, count), (f"({i} * {i} + 1)", count * count + 1)]
        if self.rng.random() < 0.4:
            name = self.name("list")
            self.declare(f"const {name} = [{', '.join(str(self.rng.choice([0.5, -0.25, 1.5, 0.125, 1.0])) for _ in range(max(count, 1)))}]")
            b.floats.append((f"{name}[{i}]", 1.5))

    def argument(self, b, kind):
        """Of a layer, static: the counter's in a loop, mostly."""
        rng, counter = self.rng, b.loops[-1] if b.loops and self.rng.random() < 0.6 else None
        if kind == "int":
            return f"{counter} + 1" if counter else str(rng.randrange(1, 4))
        if kind == "float":
            return rng.choice(b.floats)[0] if counter else rng.choice(["0.5", "1.0", "-0.25"])
        if kind == "mask":
            return f"if {counter} % 2 == 0 then causal else full" if counter else rng.choice(["causal", "full", "causal and not full", "not causal"])
        return f"{counter} == 1" if counter else rng.choice(["true", "false"])

    def call_layer(self, b):
        """Calls a layer, a new one or one that is there: its S may be T here."""
        rng = self.rng
        if self.layers and rng.random() < 0.5:
            layer = rng.choice(self.layers)
        else:
            layer = self.make_layer()
            if not layer:
                return
        name, argument, statics, results, cost, mag = layer
        names = rng.choice([{}, {"S": "T"}])
        x = b.pick(lambda v: v.dtype == argument.dtype and v.mag <= 4 and v.dims == tuple(renamed(d, names) for d in argument.dims))
        if not x or not b.pay(cost * 2):
            return
        args = [x.name, *(self.argument(b, kind) for kind in statics)]
        values = [b.result(r.dtype, [renamed(d, names) for d in r.dims], max(r.mag, mag)) for r in results]
        b.line(f"{', '.join(v.name for v in values)} = {name}({', '.join(args)}, name = {b.param()})")
        for value in values:
            b.add(value)

    def make_layer(self):
        rng = self.rng
        dims = rng.choice([("B", "S", rng.choice(SMALL_WIDTHS)), ("B", "S", rng.choice(SMALL_WIDTHS)), ("B", "S", rng.choice(SMALL_HEADS), 8)])
        statics = rng.sample(["int", "float", "mask", "bool"], rng.randrange(3))
        name, before, budget = self.name("layer"), self.cost, self.budget
        b = Body(self, "p", {**self.sizes, "T": min(self.sizes["S"], self.sizes["T"]), "S": min(self.sizes["S"], self.sizes["T"])})
        b.mask_argument = "m" if "mask" in statics else None
        b.floats = [("f", 1.5)] if "float" in statics else []
        b.ints = [("n", 5)] if "int" in statics else []
        self.budget = self.cost + (self.budget - self.cost) / 4
        x = b.add(Value(rng, "x", b.float_type(), dims, 4.0))
        scalars = {"int": "n", "float": "f", "bool": "c"}
        for _ in range(rng.randrange(1, 5)):
            random_ops.random(b)
        if "float" in statics:
            b.assign(f"f * {x.name} + 0.1", x.dtype, dims, 7)
        if "int" in statics:
            b.assign(f"{x.name} * (1.0 / n)", x.dtype, dims, 4)
        results = b.find(lambda v: v.is_float() and not any("T" in str(d) for d in v.dims) and v.mag < 50 and v is not x)
        self.budget = budget
        if not results or len(self.layers) > 6:
            return None
        y, second = rng.choice(results[-3:]), rng.choice(results) if rng.random() < 0.3 else None
        text = f"if c then {y.name} else tanh({y.name})" if "bool" in statics else y.name
        arguments = [f"x: {x.type()}"] + [f"{scalars.get(s, 'm')}: {s}" for s in statics]
        types = f"(y: {y.type()}, z: {second.type()})" if second else y.type()
        self.declare(f"layer {name}({', '.join(arguments)}) -> {types} {{", *b.lines, f"  return {text}{f', {second.name}' if second else ''}", "}")
        self.layers.append((name, x, statics, [y, second] if second else [y], self.cost - before, max(y.mag, 1)))
        return self.layers[-1]

    # ---- entries

    def make_entry(self, name):
        rng = self.rng
        self.cost, self.budget = 0, 2e7
        b = Body(self, name, self.sizes)
        inputs = self.inputs(b)
        self.statements(b, rng.randrange(3, 14))
        computed = [v for v in b.values if v not in inputs]
        results = [v for v in computed if v.name not in b.used]
        if not results:
            results = [computed[-1] if computed else b.assign(f"{inputs[0].name} * 2.0", inputs[0].dtype, inputs[0].dims, 2)]
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
