/* kith devices: the engines of this machine, and why one cannot be used. */
#include "commands.h"
#include "errors.h"
#include "kith.h"
#include "report.h"

int command_devices(const cli_options *options) {
  if (options->n_arguments > 0)
    return cli_usage("devices", "'%s' is not understood: devices takes no arguments", options->arguments[0]);
  json_t *list = options->json ? json_array() : NULL;
  kith_device device;
  for (uint32_t i = 0; kith_device_describe(i, &device) == KITH_OK; i++) {
    if (options->json)
      json_array_append_new(list, JSON_OBJECT({"name", json_text(device.name)},
                                              {"usable", json_boolean(device.usable)},
                                              {"description", json_text(device.description)}));
    else
      printf("%-8s%s%s\n", device.name, device.usable ? "" : "not usable: ", device.description);
  }
  return options->json ? report_json(JSON_OBJECT({"devices", list}), stdout) : CLI_OK;
}
