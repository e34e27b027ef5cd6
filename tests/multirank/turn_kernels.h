#ifndef ULY_TESTS_MULTIRANK_TURN_KERNELS_H
#define ULY_TESTS_MULTIRANK_TURN_KERNELS_H

#include "runtime/abi.h"

enum { TURN_D = 4, TURN_IDS = 10 };
enum { TURN_B, TURN_ROWS, TURN_S, TURN_START, TURN_PEER_START, TURN_PEER_ROWS, TURN_N_VALS };

void turn_spread(const uly_call *c);
void turn_around(const uly_call *c);

#endif
