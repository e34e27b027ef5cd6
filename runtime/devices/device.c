#include "runtime/devices/device.h"

#include <string.h>

#define DEVICE(name) extern const uly_device_ops uly_device_##name;
#include "runtime/devices/devices.def"

static const uly_device_ops *const devices[] = {
#define DEVICE(name) &uly_device_##name,
#include "runtime/devices/devices.def"
};
enum { N_DEVICES = sizeof devices / sizeof *devices };

uly_status uly_device_find(const char *name, uly_error *error, const uly_device_ops **out_ops) {
  for (int i = 0; i < N_DEVICES; i++)
    if (!name || !*name || strcmp(name, devices[i]->name) == 0) {
      *out_ops = devices[i];
      return ULY_OK;
    }
  char list[128] = "";
  for (int i = 0; i < N_DEVICES; i++) {
    strcat(list, i ? ", " : "");
    strcat(list, devices[i]->name);
  }
  return uly_fail(error, ULY_UNAVAILABLE, "there is no device \"%.40s\"; devices: %s", name, list);
}
