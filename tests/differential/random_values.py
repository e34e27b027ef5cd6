"""Values of random specs, and bodies: statements over values in scope. random_ops.py has what makes them."""
import re


class Value:
    """|mag|: bound of what it holds; |exact|: without rounding errors; |limit|: ints are in [0, limit); |weight|: of parameters alone."""

    weight = False

    def __init__(self, rng, name, dtype, dims, mag=1.0, exact=False, limit=0):
        self.rng, self.name, self.dtype, self.dims, self.mag, self.exact, self.limit = rng, name, dtype, tuple(dims), mag, exact, limit

    def type(self):
        return f"{self.dtype}[{', '.join(str(d) for d in self.dims)}]"

    def named(self, name):
        return Value(self.rng, name, self.dtype, self.dims, self.mag, self.exact, self.limit)


class Body:
    """Statements of an entry, a layer or a repeat."""

    def __init__(self, spec, prefix, sizes, params=None):
        self.spec, self.rng, self.prefix, self.sizes = spec, spec.rng, prefix, sizes
        self.lines, self.indent, self.values, self.loops, self.used = [], "  ", [], [], set()
        self.params, self.in_layer = params or prefix, False
        self.cost = 0

    # ---- names

    def fresh(self):
        self.spec.n += 1
        return f"v{self.spec.n}"

    def param(self):
        """A parameter's name in quotes, with the counters of the loops around it."""
        self.spec.n += 1
        counters = "".join(f".{{{i}}}" for i in self.loops)
        return f"\"{self.params}.{self.spec.n}{counters}\""

    # ---- sizes

    def size(self, d):
        if isinstance(d, int):
            return d
        return 2 * self.sizes[d[-1]] if d.startswith("2 *") else self.sizes[d]

    def elements(self, dims):
        n = 1
        for d in dims:
            n *= self.size(d)
        return n

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

    def assign(self, text, dtype, dims, mag, exact=False, limit=0):
        value = Value(self.rng, self.fresh(), dtype, dims, mag, exact, limit)
        used = [v for v in self.values if re.search(rf"\b{v.name}\b", text)]
        value.weight = all(v.weight for v in used) and (bool(used) or "param(" in text) and all(isinstance(d, int) for d in dims)
        self.line(f"{value.name} = {text}")
        return self.add(value)
