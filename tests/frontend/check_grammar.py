"""The grammar of specs/SPEC.md and the parser accept the same: specs of the tree, sentences that the grammar makes, and both with words dropped, doubled and exchanged.
Usage: check_grammar.py ROOT ULYC [SAMPLES [SEED]]

The grammar's own form: rule = alternatives; "sign", NAME (a kind of token), [ x ], { x }, ( x ), list(x) for [ x { "," x } [ "," ] ]; NL is the end of a line."""
import functools
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

DTYPES = "f32 bf16 f16 i32 i64 u8 bool".split()
# What the parser says beyond the grammar, and the page in words: such samples decide nothing.
IN_WORDS = re.compile(r"`\.\.\.` (?:stands|can|may)|is out of|does not fit a 64-bit|nested deeper|limit is|in a string|two `\.\.\.`|more than one `\.\.\.`|in this index|no statement")


# ---- the grammar

def read_grammar(page):
    text = re.search(r"<!-- grammar -->\n```\n(.*?)```", page, re.S).group(1)
    rules = {}
    for name, body in re.findall(r"^(\w+) += (.*(?:\n +.*)*)", text, re.M):
        words = re.findall(r'"[^"]+"|\w+|[][{}()|]', body)
        tree, rest = alternatives(words)
        assert not rest, (name, rest)
        rules[name] = tree
    return rules


def alternatives(words):
    options = []
    while True:
        items = []
        while words and words[0] not in "|)]}":
            item, words = primary(words)
            items.append(item)
        options.append(("seq", tuple(items)))
        if not words or words[0] != "|":
            return (options[0] if len(options) == 1 else ("or", tuple(options))), words
        words = words[1:]


def primary(words):
    word, words = words[0], words[1:]
    if word in "([{":
        inner, words = alternatives(words)
        assert words[0] == {"(": ")", "[": "]", "{": "}"}[word]
        kind = {"(": None, "[": "maybe", "{": "many"}[word]
        return (kind, inner) if kind else inner, words[1:]
    if word == "list":
        inner, words = alternatives(words[1:])
        comma = ("token", ",")
        return ("maybe", ("seq", (inner, ("many", ("seq", (comma, inner))), ("maybe", comma)))), words[1:]
    if word[0] == '"':
        return ("token", word[1:-1]), words
    return ("kind" if word.isupper() else "rule", word), words


# ---- tokens: (kind, text); a newline is one where it ends a statement

def lexer(root):
    rows = re.findall(r'^TOKEN\(\w+,\s*"([^"]+)",\s*(\w+),\s*(\d)\)', (root / "frontend/token.def").read_text(), re.M)
    signs = sorted((t for t, kind, _ in rows if kind == "SIGN"), key=len, reverse=True)
    words = {t for t, kind, _ in rows if kind != "SIGN"}
    goes_on = {t for t, _, c in rows if c == "1"}
    pattern = re.compile(r'(?P<blank>[ \t\r]+|#[^\n]*)|(?P<end>\n)|(?P<STRING>"[^"\n]*")|(?P<FLOAT>\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)|(?P<INT>\d+)|(?P<NAME>[A-Za-z_]\w*)|(?P<sign>%s)'
                         % "|".join(map(re.escape, signs)))

    def tokens(text):
        out, depth = [], 0
        for m in pattern.finditer(text):
            kind, word = m.lastgroup, m.group()
            if kind == "blank":
                continue
            if kind == "end":
                if depth == 0 and out and out[-1][1] not in goes_on and out[-1][0] != "NL":
                    out.append(("NL", "\n"))
                continue
            depth = max(0, depth + (word in ("(", "[")) - (word in (")", "]"))) if kind == "sign" else depth
            out.append(("word" if word in words else "sign" if kind == "sign" else kind, word))
        if out and out[-1][0] != "NL":
            out.append(("NL", "\n"))
        return out

    return tokens


# ---- does the grammar take these tokens?

def beginnings(rules):
    """Of each node what it can begin with, texts of signs and words and kinds, and whether it can be empty. No rule begins with itself."""
    @functools.lru_cache(maxsize=None)
    def first(node):
        kind, what = node
        if kind in ("token", "kind"):
            return frozenset([what]), False
        if kind == "rule":
            return first(rules[what])
        if kind in ("maybe", "many"):
            return first(what)[0], True
        if kind == "or":
            parts = [first(item) for item in what]
            return frozenset().union(*(p[0] for p in parts)), any(p[1] for p in parts)
        begin = frozenset()
        for item in what:
            more, empty = first(item)
            begin |= more
            if not empty:
                return begin, False
        return begin, True

    return first


def recogniser(rules):
    first = beginnings(rules)

    def accepts(tokens):
        n = len(tokens)
        # What stands at each place, as grammars spell it.
        names = [{word, kind} if kind != "STRING" else {kind} for kind, word in tokens]
        for i in range(n - 1):
            if tokens[i][1] in DTYPES and tokens[i + 1] == ("sign", "["):
                names[i].add("DTYPE")
        memo = {}

        def ends(node, i, rule):
            key = (id(node), i, rule == "primary")
            if key not in memo:
                begin, empty = first(node)
                memo[key] = frozenset() if not empty and (i >= n or not begin & names[i]) else frozenset(step(node, i, rule))
            return memo[key]

        def step(node, i, rule):
            kind, what = node
            if kind in ("token", "kind"):
                # In an expression a dtype in front of [ is no name.
                return [i + 1] if i < n and what in names[i] and not (what == "NAME" and rule == "primary" and "DTYPE" in names[i]) else []
            if kind == "rule":
                return ends(rules[what], i, what)
            if kind == "or":
                return set().union(*(ends(option, i, rule) for option in what))
            if kind == "maybe":
                return ends(what, i, rule) | {i}
            if kind == "many":
                done, new = {i}, {i}
                while new:
                    new = set().union(*(ends(what, j, rule) for j in new)) - done
                    done |= new
                return done
            at = {i}
            for item in what:
                at = set().union(*(ends(item, j, rule) for j in at))
            return at

        return n in ends(("rule", "spec"), 0, "spec")

    return accepts


# ---- sentences of the grammar

def heights(rules):
    """How deep the flattest sentence of each rule is."""
    least = dict.fromkeys(rules, 1000)

    def height(node):
        kind, what = node
        if kind in ("token", "kind", "maybe", "many"):
            return 0
        if kind == "rule":
            return least[what] + 1
        return (min if kind == "or" else max)([height(item) for item in what] or [0])

    for _ in rules:
        least = {name: height(tree) for name, tree in rules.items()}
    return height


def maker(rules, generator):
    height, budget = heights(rules), [0]

    def make(node, room):
        kind, what = node
        if budget[0] <= 0:
            room = 0
        if kind in ("token", "kind"):
            budget[0] -= 1
        if kind == "token":
            return [what]
        if kind == "kind":
            return [{"NAME": lambda: generator.choice("abxyz") + generator.choice("123"), "DTYPE": lambda: generator.choice(DTYPES), "INT": lambda: "1", "NL": lambda: "\n",
                     "FLOAT": lambda: generator.choice(["1.5", "2e-3", "0.25"]), "STRING": lambda: '"s{%s}"' % generator.choice("ab")}[what]()]
        if kind == "rule":
            return make(rules[what], room - 1)
        if kind == "or":
            flattest = min(map(height, what))
            return make(generator.choice([o for o in what if height(o) <= max(room, flattest)]), room)
        if kind == "maybe":
            return make(what, room) if room > 0 and generator.random() < 0.4 else []
        if kind == "many":
            n = generator.choice([0, 0, 1, 2]) if room > 0 else 0
            return [w for _ in range(n) for w in make(what, room)]
        return [w for item in what for w in make(item, room)]

    def spec():
        budget[0] = generator.randint(10, 60)
        return make(("rule", "spec"), 40)

    return spec


def text_of(words):
    return "".join(word if word == "\n" else word + " " for word in words)


# ---- comparison

def parser_says(ulyc, texts):
    """For each text whether the parser takes it; None where what it says stands in the page in words. Several files a call, so that it does not cost a process each."""
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for begin in range(0, len(texts), 100):
            names = []
            for i, text in enumerate(texts[begin:begin + 100], begin):
                path = pathlib.Path(folder) / f"{i}.spec"
                path.write_text(text)
                names.append(str(path))
            done = subprocess.run([ulyc, "fmt", "--check", *names], capture_output=True, text=True)
            said = re.findall(r"/(\d+)\.spec:\d+:\d+: error: (.*)", done.stderr)
            for i in range(begin, begin + len(names)):
                errors = [what for n, what in said if int(n) == i and not what.startswith("from here on the layout")]
                answers[i] = True if not errors else None if any(IN_WORDS.search(e) for e in errors) else False
    return [answers[i] for i in range(len(texts))]


def mutate(tokens, generator):
    tokens = list(tokens)
    for _ in range(generator.choice([1, 1, 2])):
        if len(tokens) < 5:
            break
        i, j = generator.randrange(3, len(tokens)), generator.randrange(3, len(tokens))
        if "_" in (tokens[i][1], tokens[j][1]):
            continue
        kind = generator.randrange(4)
        if kind == 0:
            del tokens[i]
        elif kind == 1:
            tokens.insert(i, tokens[j])
        elif kind == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        else:
            tokens[i] = tokens[j]
    return tokens


def declarations(tokens):
    """Specs of one declaration each: short, so that many can be tried."""
    words = {"const", "free", "grid", "dtype", "fn", "mask", "score", "layer", "model"}
    start, depth = 3, 0
    for i in range(3, len(tokens)):
        depth += (tokens[i][1] == "{") - (tokens[i][1] == "}")
        if tokens[i][0] == "NL" and depth == 0 and (i + 1 == len(tokens) or tokens[i + 1][1] in words):
            yield tokens[:3] + tokens[start:i + 1]
            start = i + 1


def main():
    root, ulyc = pathlib.Path(sys.argv[1]), sys.argv[2]
    quick = os.environ.get("ULY_TEST_MODE") == "quick"
    samples, seed = int(sys.argv[3]) if len(sys.argv) > 3 else 100 if quick else 300, int(sys.argv[4]) if len(sys.argv) > 4 else 1
    sys.setrecursionlimit(20000)
    generator = random.Random(seed)
    rules = read_grammar((root / "specs/SPEC.md").read_text())
    tokens_of = lexer(root)
    pieces, problems = [], []
    for path in sorted(p for folder in ("specs", "tests/layers", "tests/models") for p in (root / folder).rglob("*.spec")):
        pieces += list(declarations(tokens_of(path.read_text())))
    pieces = [p for p in pieces if len(p) < 120]
    cases = [text_of([w for _, w in p]) for p in pieces]
    make, accepts = maker(rules, generator), recogniser(rules)
    made = [text_of(make()) for _ in range(samples)]
    made = [t for t in made if len(t) < 3000]
    sources = pieces + [t for t in map(tokens_of, made) if len(t) < 120]
    mutants = [text_of([w for _, w in mutate(generator.choice(sources), generator)]) for _ in range(2 * samples)]
    texts = cases + made + mutants
    answers, taken, refused, open_ = parser_says(ulyc, texts), 0, 0, 0
    for i, (text, answer) in enumerate(zip(texts, answers)):
        if answer is None:
            open_ += 1
            continue
        want = True if len(cases) <= i < len(cases) + len(made) else accepts(tokens_of(text))
        taken, refused = taken + answer, refused + (not answer)
        if want != answer:
            problems.append(f"the parser {'takes' if answer else 'refuses'}, the grammar {'takes' if want else 'refuses'} (seed {seed}):\n{text}")
    for problem in problems[:10]:
        print(problem)
    print(f"{len(texts)} texts: {taken} taken, {refused} refused, {open_} left to words, {len(problems)} problems")
    return bool(problems) or taken < 100 or refused < samples // 4


sys.exit(main())
