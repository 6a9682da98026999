/* kith devices: the engines of this machine, and why one cannot be used. */
#include "commands.h"
#include "errors.h"
#include "kith.h"
#include "report.h"
#include "session.h"
#include "signals.h"

static int calibrate(const cli_options *options) {
  kith_context *ctx;
  kith_speeds speeds = {0};
  kith_context_options context = kith_context_options_init();
  context.threads = (uint32_t)options->threads;
  kith_status status = kith_context_create(&context, &ctx);
  signals_watch(ctx);
  if (!status)
    status = kith_calibrate(ctx, &speeds);
  signals_watch(NULL);
  int code = !status            ? CLI_OK
             : signals_caught() ? signals_fail(NULL)
                                : cli_fail(session_exit_code(status, true), "%s", kith_message(ctx));
  json_t *list = options->json && !code ? json_array() : NULL;
  for (uint32_t i = 0; i < speeds.n; i++) {
    const kith_speed *s = &speeds.list[i];
    if (options->json)
      json_array_append_new(list,
                            JSON_OBJECT({"engine", json_text(s->engine)}, {"dim", json_count(s->dim)},
                                        {"points", json_count(s->points)}, {"pairs", json_count(s->pairs)},
                                        {"seconds", json_number(s->seconds)}));
    else
      printf("%-8sdim %u: %.3g pairs/s\n", s->engine, s->dim, (double)s->pairs / s->seconds);
  }
  kith_context_destroy(ctx);
  return code || !options->json ? code : report_json(JSON_OBJECT({"speeds", list}), stdout);
}

int command_devices(const cli_options *options) {
  if (options->n_arguments > 0)
    return cli_usage("devices", "'%s' is not understood: devices takes no arguments", options->arguments[0]);
  if (options->calibrate)
    return calibrate(options);
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
