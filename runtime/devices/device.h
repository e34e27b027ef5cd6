// Where kernels run and memory comes from. A device belongs to one bind and is used by one thread at a time. To add one: a file like null.c, and a row in devices.def.
#ifndef ULY_RUNTIME_DEVICES_DEVICE_H
#define ULY_RUNTIME_DEVICES_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/abi.h"
#include "runtime/base/error.h"

typedef struct uly_device uly_device;

typedef struct uly_device_ops {
  const char *name;
  bool idle; // computes nothing: what it leaves behind is not to be relied on
  // |threads| ≥ 1, with the caller's; |ranks| of them share the machine, so that waits know whether to spin. All that launches need is made here and in reserve: launches allocate nothing.
  uly_status (*create)(int threads, int64_t ranks, uly_error *error, uly_device **out_device);
  void (*destroy)(uly_device *device);
  // Zeroed, 64-byte aligned. |bytes| may be 0; the pointer is not NULL.
  uly_status (*alloc)(uly_device *device, size_t bytes, uly_error *error, void **out_memory);
  void (*free)(uly_device *device, void *memory, size_t bytes);
  // Every thread has at least |bytes| of scratch from now on.
  uly_status (*reserve)(uly_device *device, size_t bytes, uly_error *error);
  // Around a run: the caller's floating-point mode becomes the kernels' (denormals are zero) and comes back.
  void (*begin)(uly_device *device);
  void (*end)(uly_device *device);
  // Computes items [0, items) of |kernel| and returns when they are done; lo, hi and scratch of |call| are set here.
  void (*launch)(uly_device *device, uly_kernel kernel, const uly_call *call, int64_t items);
  void (*poison)(uly_device *device); // fills all scratch with NaN, for tests; NULL: leaves it
  void (*copy)(uly_device *device, void *to, const void *from, size_t bytes);
} uly_device_ops;

struct uly_device {
  const uly_device_ops *ops;
  int threads;
};

// The device of that name, NULL or "" for the default; ULY_UNAVAILABLE lists those that there are.
ULY_MUST_USE uly_status uly_device_find(const char *name, uly_error *error, const uly_device_ops **out_ops);

#endif
