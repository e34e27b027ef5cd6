// ulyrun --check ref.so: a model and its reference, of one spec, on the same input. Every value that the model shows is compared with the reference's.
//
// How far from the reference a right program may be is measured, not guessed: the reference runs again, three times, with every value that it makes changed at random by what one
// rounding of its dtype may change (dtype.def). Where that moves a value's elements by at most d, the model's may be 32 d + 4 roundings of its largest element away. So a cancellation
// allows what it has to, a deep model more than a shallow one, and ints and bools nothing, unless rounding decides them.
//
// The reference's values are kept in memory that ranks share, up to ULYRT_CHECK_BYTES. What does not fit waits for the next pass, in which everything runs again.
#ifndef ULY_RUNTIME_ULYRUN_CHECK_H
#define ULY_RUNTIME_ULYRUN_CHECK_H

#include "runtime/ulyrun_job.h"

typedef struct uly_check uly_check;

// Loads the reference that |job|'s options name. |job| is prepared; its ranks look at their values from here on. ULY_INVALID_INPUT: it is not of the same spec, which |error| says.
ULY_MUST_USE uly_status uly_check_create(uly_job *job, uly_check **out_check, uly_error *error);
void uly_check_destroy(uly_check *check); // accepts NULL
// Runs the reference, before the ranks of a pass start.
ULY_MUST_USE uly_status uly_check_pass(uly_check *check, uly_error *error);
// What the ranks of a pass have found: ULY_MISMATCH where something differs.
ULY_MUST_USE uly_status uly_check_finish(uly_check *check, const uly_rank_result *results, int n, uly_error *error);
bool uly_check_more(const uly_check *check); // another pass is needed
// A line about what was compared; or the place in the spec of what differs.
void uly_check_report(const uly_check *check, FILE *out);
void uly_check_show_place(const uly_check *check, FILE *out);

#endif
