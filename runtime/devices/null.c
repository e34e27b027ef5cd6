// Accepts everything and computes nothing: outputs keep what they hold. Runs the host's side of a program (steps, exchanges, checks) alone, and is the template to
// copy for a device.
#include <stdlib.h>

#include "runtime/base/pages.h"
#include "runtime/devices/device.h"

extern const uly_device_ops uly_device_null;

static uly_status create(int threads, int64_t ranks, uly_error *error, uly_device **out_device) {
  (void)ranks;
  uly_device *device = calloc(1, sizeof *device);
  if (!device) return uly_fail(error, ULY_EXHAUSTED, "no memory for a device");
  *device = (uly_device){.ops = &uly_device_null, .threads = threads};
  *out_device = device;
  return ULY_OK;
}

static void destroy(uly_device *device) { free(device); }

static uly_status alloc(uly_device *device, size_t bytes, uly_error *error, void **out_memory) {
  (void)device;
  *out_memory = uly_pages_alloc(bytes);
  if (!*out_memory) return uly_fail(error, ULY_EXHAUSTED, "no memory for %zu bytes", bytes);
  return ULY_OK;
}

static void release(uly_device *device, void *memory, size_t bytes) {
  (void)device;
  uly_pages_free(memory, bytes);
}

static uly_status reserve(uly_device *device, size_t bytes, uly_error *error) {
  (void)device, (void)bytes, (void)error;
  return ULY_OK;
}

static void begin(uly_device *device) { (void)device; }
static void end(uly_device *device) { (void)device; }

static void launch(uly_device *device, uly_kernel kernel, const uly_call *call, int64_t items) { (void)device, (void)kernel, (void)call, (void)items; }

static void copy(uly_device *device, void *to, const void *from, size_t bytes) { (void)device, (void)to, (void)from, (void)bytes; }

const uly_device_ops uly_device_null = {.name = "null",
                                        .idle = true,
                                        .create = create,
                                        .destroy = destroy,
                                        .alloc = alloc,
                                        .free = release,
                                        .reserve = reserve,
                                        .begin = begin,
                                        .end = end,
                                        .launch = launch,
                                        .copy = copy};
