/* The command kith: finds the command asked for, parses its options, runs it.
 *
 * What every command shares lives beside this file: the tables of commands and options (commands.c,
 * options.c), exit codes and error messages (errors.c), signals (signals.c). */
#include "commands.h"
#include "errors.h"
#include "kith.h"
#include "signals.h"

#include <string.h>

static int run_command(const command_entry *command, int argc, const char **argv) {
  cli_options options;
  int code = options_parse(&options, command->id, argc, argv);
  if (code == CLI_OK) {
    if (options.help)
      help_command(command, stdout);
    else
      code = command->run(&options);
  }
  options_free(&options);
  return code;
}

/* "kith help", "kith help join". */
static int run_help(const char *topic) {
  const command_entry *command = topic ? command_find(topic) : NULL;
  if (topic && !command)
    return command_unknown(topic);
  if (command)
    help_command(command, stdout);
  else
    help_program(stdout);
  return CLI_OK;
}

static int run(int argc, const char **argv) {
  if (argc < 2)
    return cli_usage(NULL, "no command given: join, plan, gen, info or devices");
  const char *name = argv[1];
  const command_entry *command = command_find(name);
  if (command)
    return run_command(command, argc - 1, argv + 1);
  if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
    return run_help(argc > 2 ? argv[2] : NULL);
  if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
    return printf("kith %s\nreads %s\n", kith_version(), kith_file_formats()), CLI_OK;
  if (strcmp(name, "--man") == 0) /* for the build, which makes kith.1 with it */
    return man_print(stdout), CLI_OK;
  if (name[0] == '-')
    return cli_usage(NULL, "unknown option '%s' before the command", name);
  return command_unknown(name);
}

int main(int argc, char **argv) {
  cli_open_standard();
  signals_install();
  return cli_finish_stdout(run(argc, (const char **)argv), NULL);
}
