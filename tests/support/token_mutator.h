// Changes the text of a spec by whole tokens: what people do by mistake, and what byte mutations seldom reach. Used by the spec fuzzer and by the test of bad specs.
#ifndef ULY_TESTS_SUPPORT_TOKEN_MUTATOR_H
#define ULY_TESTS_SUPPORT_TOKEN_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

// One change to |text| of |n| bytes, in place, in which |cap| fit: a token goes away, comes twice, changes places with another, or becomes another one of the text, a word or sign of
// the language, a type or a number. The choice follows |state|, which moves on. Returns the new length, |n| where there is no token or no room.
size_t token_mutate(char *text, size_t n, size_t cap, uint64_t *state);

#endif
