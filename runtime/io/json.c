#include "runtime/io/json.h"

#include <pthread.h>
#include <stdlib.h>

static uly_status fault(uly_json_fault *out, uint64_t at, const char *format, ...) ULY_PRINTF(3, 4);
static uly_status fault(uly_json_fault *out, uint64_t at, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(out->text, sizeof out->text, format, args);
  va_end(args);
  out->at = at;
  return ULY_INVALID_INPUT;
}

static bool is_of_number(uint8_t c) { return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'; }

// jansson makes an object of every value: this pass over the bytes bounds their number, depth and length beforehand. Whether they are JSON is left to jansson.
static uly_status check_limits(uly_bytes text, const uly_json_limits *limits, uly_json_fault *out) {
  uint64_t values = 0;
  int depth = 0, number = 0;
  bool in_string = false;
  for (uint64_t i = 0; i < text.len; i++) {
    uint8_t c = text.ptr[i];
    if (in_string) {
      if (c == '\\')
        i++;
      else if (c == '"')
        in_string = false;
      continue;
    }
    number = is_of_number(c) ? number + 1 : 0;
    if (number > limits->number) return fault(out, i, "a number of more than %d characters", limits->number);
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
    if (depth > limits->depth) return fault(out, i, "nests deeper than %d", limits->depth);
    if (c == ',' && ++values > limits->values) return fault(out, i, "more than %llu values", (unsigned long long)limits->values);
  }
  return ULY_OK;
}

// ---- memory

static _Thread_local bool lost;

static void *watched_malloc(size_t bytes) {
  void *p = malloc(bytes);
  if (!p) lost = true;
  return p;
}

// For the whole process: only commands link this file (tests/unit/embed_test.sh), never a library that hosts load.
static void install(void) { json_set_alloc_funcs(watched_malloc, free); }

void uly_json_watch(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
  lost = false;
}

bool uly_json_lost_memory(void) { return lost; }

// ---- reading

uly_status uly_json_read(uly_bytes text, const uly_json_limits *limits, json_t **out, uly_json_fault *out_fault) {
  json_error_t error;
  *out = NULL;
  uly_json_watch();
  if (text.len > limits->bytes)
    return fault(out_fault, 0, "%llu bytes, at most %llu are read", (unsigned long long)text.len, (unsigned long long)limits->bytes);
  ULY_TRY(check_limits(text, limits, out_fault));
  *out = json_loadb((const char *)text.ptr, (size_t)text.len, JSON_REJECT_DUPLICATES, &error);
  if (lost) {
    json_decref(*out);
    *out = NULL;
    return fault(out_fault, 0, "no memory for it"), ULY_EXHAUSTED;
  }
  return *out ? ULY_OK : fault(out_fault, error.position <= 0 ? 0 : (uint64_t)error.position - 1, "%s", error.text);
}
