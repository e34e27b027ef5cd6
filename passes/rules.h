// The typing rules of distribution: whether an operation may be on each rank what its types say. A rule looks at one axis; axes do not see each other, but for casts,
// which change exactly one.
#ifndef ULY_PASSES_RULES_H
#define ULY_PASSES_RULES_H

#include "passes/view.h"

// Empty, or what is wrong over |axis|. |out_operand|: the operand that it is about, or -1.
uly_str uly_rule_check(const uly_ir *ir, const uly_view *view, int32_t axis, int *out_operand);

// Is the map's expression linear in the operands of |partial| (a bit each), so that it may be applied to addends? Empty, or why not.
uly_str uly_rule_linear_map(const uly_ir *ir, const uly_view *view, uint32_t partial);

#endif
