// The header is a Python dict literal with exactly the keys descr, fortran_order and shape; what else Python could write there is refused.
#include "runtime/io/npy.h"

#include <stdlib.h>

enum { MAX_HEADER = 65536 };

typedef struct cursor {
  uly_bytes text;
  uint64_t at;
} cursor;

static int peek(cursor *c) {
  uint8_t ch;
  return uly_bytes_u8(c->text, c->at, &ch) ? ch : -1;
}

static void skip_space(cursor *c) {
  for (int ch = peek(c); ch == ' ' || ch == '\n' || ch == '\t' || ch == '\r'; ch = peek(c)) c->at++;
}

static bool take(cursor *c, char ch) {
  skip_space(c);
  if (peek(c) != ch) return false;
  c->at++;
  return true;
}

// A quoted string without escapes, or a word.
static bool take_string(cursor *c, uly_str *out) {
  skip_space(c);
  int quote = peek(c);
  if (quote != '\'' && quote != '"') return false;
  uint64_t first = ++c->at;
  for (int ch = peek(c); ch != quote; ch = peek(c)) {
    if (ch < ' ' || ch > '~' || ch == '\\') return false;
    c->at++;
  }
  uly_bytes inner;
  if (!uly_bytes_slice(c->text, first, c->at - first, &inner)) return false;
  c->at++;
  *out = (uly_str){(const char *)inner.ptr, (size_t)inner.len};
  return true;
}

static bool take_word(cursor *c, const char *word) {
  skip_space(c);
  uly_bytes inner;
  size_t len = strlen(word);
  if (!uly_bytes_slice(c->text, c->at, len, &inner) || memcmp(inner.ptr, word, len) != 0) return false;
  c->at += len;
  return true;
}

static bool take_dim(cursor *c, int64_t *out) {
  int digits = 0;
  *out = 0;
  skip_space(c);
  for (int ch = peek(c); ch >= '0' && ch <= '9'; c->at++, ch = peek(c), digits++)
    if (__builtin_mul_overflow(*out, INT64_C(10), out) || __builtin_add_overflow(*out, (int64_t)(ch - '0'), out)) return false;
  if (peek(c) == 'L') c->at++; // Python 2 wrote long integers so
  return digits > 0;
}

static bool take_shape(cursor *c, uly_ndarray *array) {
  if (!take(c, '(')) return false;
  for (array->rank = 0; !take(c, ')');) {
    if (array->rank == ULY_NDARRAY_DIMS || !take_dim(c, &array->dims[array->rank++])) return false;
    if (!take(c, ',')) return take(c, ')');
  }
  return true;
}

static bool dtype_by_npy(uly_str descr, uly_dtype *out) {
  for (int i = 0; i < ULY_N_DTYPES; i++) {
    const char *npy = uly_dtype_get((uly_dtype)i)->npy;
    if (*npy && uly_str_is(descr, npy)) return *out = (uly_dtype)i, true;
  }
  return false;
}

static uly_status parse_header(const char *path, uly_bytes text, uly_ndarray *array, uly_error *error) {
  cursor c = {.text = text};
  bool have_descr = false, have_order = false, have_shape = false;
  uly_str key, descr = {0};
  if (!take(&c, '{')) return uly_fail(error, ULY_INVALID_INPUT, "%s: the header is not a dict", path);
  while (!take(&c, '}')) {
    bool ok = take_string(&c, &key) && take(&c, ':');
    if (ok && uly_str_is(key, "descr") && !have_descr) {
      skip_space(&c);
      if (peek(&c) == '[') return uly_fail(error, ULY_INVALID_INPUT, "%s: structured dtypes are not supported", path);
      ok = have_descr = take_string(&c, &descr);
    } else if (ok && uly_str_is(key, "fortran_order") && !have_order) {
      if (take_word(&c, "True")) return uly_fail(error, ULY_INVALID_INPUT, "%s: Fortran order; save np.ascontiguousarray(x)", path);
      ok = have_order = take_word(&c, "False");
    } else if (ok && uly_str_is(key, "shape") && !have_shape) {
      ok = have_shape = take_shape(&c, array);
    } else {
      ok = false;
    }
    if (!ok) return uly_fail(error, ULY_INVALID_INPUT, "%s: bad header at byte %llu of %llu", path, (unsigned long long)c.at, (unsigned long long)text.len);
    if (!take(&c, ',') && (skip_space(&c), peek(&c) != '}'))
      return uly_fail(error, ULY_INVALID_INPUT, "%s: bad header at byte %llu", path, (unsigned long long)c.at);
  }
  skip_space(&c);
  if (c.at != text.len) return uly_fail(error, ULY_INVALID_INPUT, "%s: text behind the header's dict", path);
  if (!have_descr || !have_order || !have_shape) return uly_fail(error, ULY_INVALID_INPUT, "%s: the header lacks descr, fortran_order or shape", path);
  if (descr.len && descr.ptr[0] == '>') return uly_fail(error, ULY_INVALID_INPUT, "%s: big-endian dtype '%.*s'", path, ULY_STR_ARG(descr));
  if (!dtype_by_npy(descr, &array->dtype))
    return uly_fail(error, ULY_INVALID_INPUT, "%s: unsupported dtype '%.*s'", path, (int)(descr.len < 40 ? descr.len : 40), descr.ptr);
  return ULY_OK;
}

// Finds the header's text and where the data starts.
static uly_status find_header(const char *path, uly_bytes file, uly_bytes *out_text, uint64_t *out_data, uly_error *error) {
  uly_bytes magic;
  uint8_t major;
  if (!uly_bytes_slice(file, 0, 6, &magic) || memcmp(magic.ptr, "\x93NUMPY", 6) != 0) return uly_fail(error, ULY_INVALID_INPUT, "%s: not a .npy file", path);
  if (!uly_bytes_u8(file, 6, &major)) return uly_fail(error, ULY_INVALID_INPUT, "%s: truncated header", path);
  if (major < 1 || major > 3) return uly_fail(error, ULY_INVALID_INPUT, "%s: .npy version %d, this reader knows 1 to 3", path, major);
  uint64_t at = major == 1 ? 10 : 12;
  uint16_t short_len = 0;
  uint32_t len = 0;
  bool ok = major == 1 ? uly_bytes_u16(file, 8, &short_len) : uly_bytes_u32(file, 8, &len);
  if (major == 1) len = short_len;
  if (ok && len > MAX_HEADER) return uly_fail(error, ULY_INVALID_INPUT, "%s: a header of %u bytes, at most %d are read", path, len, MAX_HEADER);
  if (!ok || !uly_bytes_slice(file, at, len, out_text)) return uly_fail(error, ULY_INVALID_INPUT, "%s: truncated header", path);
  *out_data = at + len;
  return ULY_OK;
}

uly_status uly_npy_read(const char *path, uly_mapping *mapping, uly_ndarray *array, uly_error *error) {
  *array = (uly_ndarray){0};
  uly_bytes text, data;
  uint64_t at = 0;
  int64_t elements;
  ULY_TRY(find_header(path, mapping->bytes, &text, &at, error));
  ULY_TRY(parse_header(path, text, array, error));
  if (!uly_ndarray_size(array->dtype, array->rank, array->dims, &elements, &array->bytes))
    return uly_fail(error, ULY_INVALID_INPUT, "%s: the shape's size overflows", path);
  uint64_t have = mapping->bytes.len - at;
  if (have != (uint64_t)array->bytes || !uly_bytes_slice(mapping->bytes, at, have, &data))
    return uly_fail(error, ULY_INVALID_INPUT, "%s: %s: %lld bytes of data, the shape needs %lld", path,
                    have < (uint64_t)array->bytes ? "truncated" : "too long", (long long)have, (long long)array->bytes);
  array->data = data.ptr;
  if ((uintptr_t)data.ptr % (uintptr_t)uly_dtype_bytes(array->dtype) == 0) return ULY_OK;
  mapping->copy = malloc((size_t)have + 1);
  if (!mapping->copy) return uly_fail(error, ULY_EXHAUSTED, "%s: no memory for %lld bytes", path, (long long)have);
  memcpy(mapping->copy, data.ptr, (size_t)have);
  array->data = mapping->copy;
  return ULY_OK;
}

uly_status uly_npy_open(const char *path, uly_mapping *out_mapping, uly_ndarray *out_array, uly_error *error) {
  ULY_TRY(uly_mapping_open(path, out_mapping, error));
  uly_status status = uly_npy_read(path, out_mapping, out_array, error);
  if (status != ULY_OK) uly_mapping_close(out_mapping);
  return status;
}

uly_status uly_npy_write(const char *path, const uly_ndarray *array, uly_error *error) {
  const char *descr = uly_dtype_get(array->dtype)->npy;
  if (!*descr) return uly_fail(error, ULY_INVALID_ARGUMENT, "%s: NumPy has no %s; write a .safetensors file", path, uly_dtype_name(array->dtype));
  char shape[32 * ULY_NDARRAY_DIMS] = "", dict[512];
  size_t used = 0;
  for (int i = 0; i < array->rank; i++) used += (size_t)snprintf(shape + used, sizeof shape - used, i ? " %lld," : "%lld,", (long long)array->dims[i]);
  if (array->rank > 1) shape[used - 1] = 0;
  int n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
  // Magic, version, length, dict, spaces and a newline fill a multiple of 64 bytes.
  uint8_t head[512 + 64];
  size_t total = (10 + (size_t)n + 1 + 63) / 64 * 64;
  memset(head, ' ', sizeof head);
  memcpy(head, "\x93NUMPY\x01", 8);
  head[8] = (uint8_t)((total - 10) & 255);
  head[9] = (uint8_t)((total - 10) >> 8);
  memcpy(head + 10, dict, (size_t)n);
  head[total - 1] = '\n';
  uly_output output;
  ULY_TRY(uly_output_open(path, &output, error));
  uly_status status = uly_output_write(&output, head, total, error);
  if (status == ULY_OK) status = uly_output_write(&output, array->data, (uint64_t)array->bytes, error);
  if (status == ULY_OK) return uly_output_commit(&output, error);
  uly_output_discard(&output);
  return status;
}
