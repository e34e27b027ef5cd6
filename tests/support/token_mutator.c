#include "tests/support/token_mutator.h"

#include <ctype.h>
#include <string.h>

enum { MAX_TOKENS = 4096, MAX_TOKEN = 128 };

typedef struct token {
  size_t at, n;
} token;

static const char *const words[] = {
#define TOKEN(id, text, kind, continues) text,
#include "frontend/token.def"
#define BUILTIN(name, ...) #name,
#include "frontend/builtins.def"
#define SCALAR(id, text, n_args, class, doc) text,
#include "frontend/scalar.def"
#define DTYPE(id, name, ...) name,
#include "runtime/base/dtype.def"
    "const", "free",   "grid",  "dtype", "fn",   "mask", "score",      "layer",      "model", "B",   "S",   "q",     "k",         "s",
    "0",     "1",      "2",     "7",     "64",   "1.5",  "1e300",      "-1",         "4096",  "inf", "pi",  "\"\"",  "\"{i}.w\"", "9223372036854775807",
    "_",     "weight", "float", "int",   "bool", "str",  "2147483648", "4294967296", "name",  "dim", "eps", "scale", "full",      "causal",
};

static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int is_word(char ch) { return isalnum((unsigned char)ch) || ch == '_' || (ch & 0x80); }

// Words and numbers, strings, and single signs; a comment is none.
static size_t find_tokens(const char *text, size_t n, token *tokens) {
  size_t count = 0, i = 0;
  while (i < n && count < MAX_TOKENS) {
    size_t begin = i;
    if (text[i] == '#') {
      while (i < n && text[i] != '\n') i++;
      continue;
    }
    if (isspace((unsigned char)text[i])) {
      i++;
      continue;
    }
    if (is_word(text[i])) {
      while (i < n && is_word(text[i])) i++;
    } else if (text[i] == '"') {
      for (i++; i < n && text[i] != '"' && text[i] != '\n';) i++;
      i += i < n;
    } else {
      i++;
    }
    tokens[count++] = (token){begin, i - begin};
  }
  return count;
}

// Puts |n_new| bytes in the place of token |t|.
static size_t put(char *text, size_t n, size_t cap, token t, const char *with, size_t n_new) {
  char copy[MAX_TOKEN];
  if (n - t.n + n_new > cap || n_new > sizeof copy) return n;
  memcpy(copy, with, n_new); // |with| may stand in the text
  memmove(text + t.at + n_new, text + t.at + t.n, n - t.at - t.n);
  memcpy(text + t.at, copy, n_new);
  return n - t.n + n_new;
}

static size_t repeat(char *text, size_t n, size_t cap, token t) {
  if (n + t.n + 1 > cap) return n;
  memmove(text + t.at + t.n + 1, text + t.at, n - t.at);
  text[t.at + t.n] = ' ';
  return n + t.n + 1;
}

static size_t exchange(char *text, size_t n, size_t cap, token a, token b) {
  char first[MAX_TOKEN];
  if (a.at > b.at) return exchange(text, n, cap, b, a);
  if (a.at == b.at || a.n > sizeof first) return n;
  memcpy(first, text + a.at, a.n);
  size_t longer = put(text, n, cap, a, text + b.at, b.n);
  if (longer == n && a.n != b.n) return n;
  return put(text, longer, cap, (token){b.at + b.n - a.n, b.n}, first, a.n);
}

size_t token_mutate(char *text, size_t n, size_t cap, uint64_t *state) {
  static token tokens[MAX_TOKENS];
  size_t count = find_tokens(text, n, tokens);
  if (!count) return n;
  uint64_t r = next_random(state);
  token t = tokens[(r >> 8) % count], u = tokens[(r >> 32) % count];
  const char *word = words[(r >> 32) % (sizeof words / sizeof *words)];
  switch (r % 8) {
  case 0: return put(text, n, cap, t, "", 0);
  case 1: return repeat(text, n, cap, t);
  case 2: return exchange(text, n, cap, t, u);
  case 3:
  case 4: return put(text, n, cap, t, text + u.at, u.n);
  case 5: // a name one letter off
    if (!is_word(text[t.at])) return put(text, n, cap, t, "", 0);
    text[t.at + (r >> 40) % t.n] = "abSDx017"[(r >> 48) % 8];
    return n;
  default: return put(text, n, cap, t, word, strlen(word));
  }
}
