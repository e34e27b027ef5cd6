// JSON from outside, read with jansson: objects with two members of one name are refused, and what a text can cost is bounded before an object is made of it.
#ifndef ULY_RUNTIME_IO_JSON_H
#define ULY_RUNTIME_IO_JSON_H

#include <jansson.h>

#include "runtime/io/files.h"

typedef struct uly_json_limits {
  uint64_t bytes, values; // values: members and items, of all objects and lists
  int depth, number;      // brackets in one another; characters of a number
} uly_json_limits;

typedef struct uly_json_fault {
  uint64_t at; // byte of the text
  char text[JSON_ERROR_TEXT_LENGTH];
} uly_json_fault;

// jansson leaves out what it has no memory for, and goes on. True where that happened in this thread since the last uly_json_read or uly_json_watch: what was made is not to be used.
void uly_json_watch(void);
bool uly_json_lost_memory(void);

// ULY_EXHAUSTED, or ULY_INVALID_INPUT: |out_fault| says what is wrong, and where. The value is the caller's.
ULY_MUST_USE uly_status uly_json_read(uly_bytes text, const uly_json_limits *limits, json_t **out, uly_json_fault *out_fault);

#endif
