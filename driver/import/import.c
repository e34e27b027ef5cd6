#include "driver/import/import.h"

#include "driver/import/import_values.h"
#include "frontend/format.h"
#include "frontend/spec.h"

static const uly_json_limits limits = {.bytes = ULY_IMPORT_MAX_BYTES, .values = 1 << 16, .depth = 16, .number = 64};

static const struct {
  const char *model_type, *template;
} families[] = {
#define FAMILY(id, model_type, template) [ULY_IMPORT_##id] = {model_type, #template},
#include "driver/import/families.def"
};

static const struct {
  uly_import_family family;
  const char *name, *head, *prefix;
} architectures[] = {
#define ARCHITECTURE(family, name, head, prefix) {ULY_IMPORT_##family, name, head, prefix},
#include "driver/import/families.def"
};

static const struct {
  const char *model_type, *reason;
} later[] = {
#define LATER(model_type, reason) {model_type, reason},
#include "driver/import/families.def"
};

#define N(table) (sizeof(table) / sizeof *(table))

static bool read_json(uly_import_reader *r, json_t **out_root) {
  const uly_source *s = &r->diags->sources[r->source];
  uly_json_fault fault;
  uly_loc loc = {s->base, s->base, 1, 1};
  if (uly_json_read((uly_bytes){(const uint8_t *)s->text.ptr, s->text.len}, &limits, out_root, &fault) == ULY_OK) {
    if (json_is_object(*out_root)) return true;
    uly_diag_add(r->diags, loc, ULY_D(IMPORT_NO_OBJECT));
    return false;
  }
  size_t at = fault.at < s->text.len ? (size_t)fault.at : s->text.len;
  for (size_t i = 0; i < at; i++) {
    loc.column += ((uint8_t)s->text.ptr[i] & 0xC0) != 0x80;
    if (s->text.ptr[i] == '\n') loc.line++, loc.column = 1;
  }
  loc.begin = loc.end = s->base + (uint32_t)at;
  uly_diag_add(r->diags, loc, ULY_D(IMPORT_JSON), fault.text);
  return false;
}

static bool find_family(uly_import_reader *r) {
  const json_t *value = json_object_get(r->root, "model_type");
  uly_str names[N(families)], key = ULY_STR("model_type");
  uly_text known = {.arena = r->arena};
  for (size_t i = 0; i < N(families); i++) {
    names[i] = uly_str_of(families[i].model_type);
    uly_text_add(&known, "%s%s", i ? ", " : "", families[i].model_type);
    if (!json_is_string(value) || !uly_str_is(names[i], json_string_value(value))) continue;
    r->family = (uly_import_family)i;
    uly_import_set(&r->values, "model_type", names[i], (uly_str){0}, false);
    return true;
  }
  uly_loc loc = uly_import_place(r, key);
  if (!value) return uly_diag_add(r->diags, loc, ULY_D(IMPORT_MISSING), ULY_STR_ARG(key)), false;
  uly_str shown = uly_import_show(r->arena, value);
  for (size_t i = 0; i < N(later) && json_is_string(value); i++)
    if (strcmp(later[i].model_type, json_string_value(value)) == 0)
      return uly_diag_add(r->diags, loc, ULY_D(IMPORT_ONLY), ULY_STR_ARG(key), ULY_STR_ARG(shown), later[i].reason), false;
  uly_diag *diag = uly_diag_add(r->diags, loc, ULY_D(IMPORT_CHOICE), ULY_STR_ARG(key), ULY_STR_ARG(shown), known.ptr);
  if (json_is_string(value)) uly_diag_suggest(r->diags, diag, uly_str_of(json_string_value(value)), names, N(names));
  return false;
}

// The first of `architectures`, as the published code takes it.
static bool find_architecture(uly_import_reader *r, const uly_import_names *names) {
  uly_str key = ULY_STR("architectures");
  const json_t *list = json_object_get(r->root, key.ptr), *first = json_array_get(list, 0);
  uly_text known = {.arena = r->arena};
  for (size_t i = 0; i < N(architectures); i++) {
    if (architectures[i].family != r->family) continue;
    uly_text_add(&known, "%s%s", known.len ? ", " : "", architectures[i].name);
    if (list && !json_is_null(list) && (!json_is_string(first) || strcmp(json_string_value(first), architectures[i].name) != 0)) continue;
    uly_import_set(&r->values, "architecture", uly_str_of(architectures[i].name), (uly_str){0}, false);
    uly_import_set(&r->values, "head", uly_str_of(architectures[i].head), (uly_str){0}, false);
    uly_import_set(&r->values, "prefix", names->prefix.ptr ? names->prefix : uly_str_of(architectures[i].prefix), (uly_str){0}, false);
    uly_import_set(&r->values, "gamma", names->gamma ? ULY_STR("yes") : (uly_str){0}, (uly_str){0}, false);
    return true;
  }
  uly_str shown = uly_import_show(r->arena, first ? first : list);
  uly_diag_add(r->diags, uly_import_place(r, key), ULY_D(IMPORT_CHOICE), ULY_STR_ARG(key), ULY_STR_ARG(shown), known.ptr);
  return false;
}

// Fills the template and has the frontend judge the values together.
static uly_status write_spec(uly_import_reader *r, uly_str *out_spec, uly_graph **out_graph) {
  uly_text text = {.arena = r->arena};
  uly_import_expand(&text, &r->values, families[r->family].template);
  ULY_TRY(uly_format(r->arena, r->diags, uly_diags_add_source(r->diags, ULY_STR("<the spec>"), uly_text_str(&text)), out_spec));
  uly_graph *graph = uly_spec_read(r->arena, r->diags, ULY_STR("<the spec>"), *out_spec, NULL, 0);
  if (graph && out_graph) *out_graph = graph;
  if (graph) return ULY_OK;
  uly_diag_add(r->diags, uly_import_place(r, (uly_str){0}), ULY_D(IMPORT_NO_SPEC));
  return ULY_INVALID_INPUT;
}

uly_status uly_import(uly_arena *arena, uly_diags *diags, uly_str name, uly_str text, const uly_import_names *names, uly_str *out_spec, uly_graph **out_graph,
                      uly_text *notes) {
  json_t *root = NULL;
  uly_import_reader *r = ULY_NEW(arena, uly_import_reader);
  *r = (uly_import_reader){.arena = arena, .diags = diags, .source = uly_diags_add_source(diags, name, text)};
  bool ok = read_json(r, &root);
  r->root = root;
  ok = ok && find_family(r) && find_architecture(r, names);
  if (ok) {
    uly_import_read_keys(r);
    uly_import_note_unread(r, notes);
  }
  if (uly_json_lost_memory()) uly_out_of_memory(0);
  uly_status status = ok && !diags->n_errors ? write_spec(r, out_spec, out_graph) : ULY_INVALID_INPUT;
  json_decref(root);
  return status;
}
