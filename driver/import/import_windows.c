// Which layers see only the last W keys: what the file lists, or what the family does, as the shortest way to say it.
#include <stdlib.h>

#include "driver/import/import_values.h"
#include "frontend/check.h" // ULY_MAX_REPEAT

static int64_t int_of(const uly_import_values *values, const char *name) {
  const uly_import_value *value = uly_import_get(values, uly_str_of(name));
  return value ? strtoll(value->text.ptr, NULL, 10) : 0;
}

// |out| gets the layers that |listed| names, |n| of them. False after an error.
static bool read_list(const uly_import_reader *r, const json_t *listed, uly_str path, bool *out, int64_t n) {
  if ((int64_t)json_array_size(listed) != n) {
    uly_diag_add(r->diags, uly_import_place(r, path), ULY_D(IMPORT_LENGTH), ULY_STR_ARG(path), json_array_size(listed), (intmax_t)n);
    return false;
  }
  for (int64_t i = 0; i < n; i++) {
    const json_t *item = json_array_get(listed, (size_t)i);
    const char *kind = json_is_string(item) ? json_string_value(item) : "";
    out[i] = strcmp(kind, "sliding_attention") == 0;
    if (out[i] || strcmp(kind, "full_attention") == 0) continue;
    uly_str shown = uly_import_show(r->arena, item);
    uly_diag_add(r->diags, uly_import_place(r, path), ULY_D(IMPORT_CHOICE), ULY_STR_ARG(path), ULY_STR_ARG(shown), "full_attention, sliding_attention");
    return false;
  }
  return true;
}

static const char *classify(const bool *windowed, int64_t n, int64_t *out_first) {
  int64_t count = 0, first = n;
  bool even = true;
  for (int64_t i = 0; i < n; i++) {
    count += windowed[i];
    if (windowed[i] && first == n) first = i;
    even &= windowed[i] == (i % 2 == 0);
  }
  *out_first = first;
  return count == 0 ? "" : count == n ? "all" : even ? "even" : first + count == n ? "from" : "list";
}

static void set_list(uly_import_reader *r, const bool *windowed, int64_t n, uly_str origin) {
  uly_text list = {.arena = r->arena};
  for (int64_t i = 0; i < n; i++) uly_text_add(&list, "%s%s", i ? ", " : "[", windowed[i] ? "true" : "false");
  uly_text_add(&list, "]");
  uly_import_set(&r->values, "windowed", uly_text_str(&list), origin, true);
}

void uly_import_settle_windows(uly_import_reader *r, const json_t *listed, uly_str path, uly_str rule) {
  uly_import_values *values = &r->values;
  int64_t n = int_of(values, "L"), from = int_of(values, "M"), first = 0;
  if (n < 1 || n > ULY_MAX_REPEAT) return; // which the frontend tells
  bool *windowed = ULY_NEW_ARRAY(r->arena, bool, n);
  for (int64_t i = 0; i < n; i++) windowed[i] = uly_str_is(rule, "all") || (uly_str_is(rule, "even") && i % 2 == 0) || (uly_str_is(rule, "from") && i >= from);
  if (listed && !read_list(r, listed, path, windowed, n)) return;
  uly_str kind = uly_str_of(classify(windowed, n, &first));
  bool mixed = kind.len && !uly_str_is(kind, "all");
  if (kind.len && !uly_import_get(values, ULY_STR("W")))
    uly_diag_add(r->diags, uly_import_place(r, path), ULY_D(IMPORT_ONLY), ULY_STR_ARG(path), 17, "sliding_attention", "no window is set for it");
  uly_import_set(values, "window", kind, (uly_str){0}, false);
  uly_import_set(values, "mixed", mixed ? ULY_STR("yes") : (uly_str){0}, (uly_str){0}, false);
  uly_import_set(values, "mask", mixed ? ULY_STR("m") : kind.len ? ULY_STR("local") : ULY_STR("causal"), (uly_str){0}, false);
  if (!kind.len) uly_import_set(values, "W", (uly_str){0}, (uly_str){0}, true);
  if (!uly_str_is(kind, "from"))
    uly_import_set(values, "M", (uly_str){0}, (uly_str){0}, true);
  else if (listed)
    uly_import_set(values, "M", uly_str_format(r->arena, "%jd", (intmax_t)first), path, true);
  if (uly_str_is(kind, "list")) set_list(r, windowed, n, path);
}
