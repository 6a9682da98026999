/* --help, made from the tables of commands and options. */
#include "commands.h"
#include "errors.h"

#include <string.h>

enum { OPTION_WIDTH = 18 };

static void print_examples(const command_example *examples, FILE *out) {
  for (; examples->line; examples++) {
    fprintf(out, "  %s\n", examples->line);
    if (examples->says)
      fprintf(out, "      %s\n", examples->says);
  }
}

static void print_option(const option_entry *option, FILE *out) {
  char left[64];
  char letter[5] = "    ";
  if (option->letter)
    snprintf(letter, sizeof letter, "-%c, ", option->letter);
  snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
           option->argument ? option->argument : "");
  for (const char *line = option->help; *line; line += *line == '\n') {
    int length = (int)strcspn(line, "\n");
    fprintf(out, "  %-*s  %.*s\n", OPTION_WIDTH, line == option->help ? left : "", length, line);
    line += length;
  }
}

static void print_options(command_id id, FILE *out) {
  const char *group = NULL;
  for (const option_entry *option = OPTIONS; option->name; option++) {
    if (!(option->commands & id))
      continue;
    if (!group || strcmp(group, option->group) != 0)
      fprintf(out, "\n%s:\n", option->group);
    group = option->group;
    print_option(option, out);
  }
}

static void print_exit_codes(FILE *out) {
  fputs("\nExit codes:\n", out);
  for (const cli_exit_code *code = CLI_EXIT_CODES; code->meaning; code++)
    fprintf(out, "  %3d  %s\n", code->code, code->meaning);
}

void help_command(const command_entry *command, FILE *out) {
  fprintf(out, "kith %s: %s\n\n", command->name, command->summary);
  for (const char *const *usage = command->usage; *usage; usage++)
    fprintf(out, "%s kith %s\n", usage == command->usage ? "Usage:" : "      ", *usage);
  fprintf(out, "\n%s\n\nExamples:\n", command->about);
  print_examples(command->examples, out);
  print_options(command->id, out);
  print_exit_codes(out);
}

void help_program(FILE *out) {
  fprintf(out, "kith: %s\n\nUsage: kith COMMAND [arguments] [options]\n\nCommands:\n", PROGRAM_SUMMARY);
  for (const command_entry *command = COMMANDS; command->name; command++)
    fprintf(out, "  %-8s  %s\n", command->name, command->summary);
  fputs("\nTry it:\n", out);
  print_examples(FIRST_STEPS, out);
  fputs("\n'kith help COMMAND' tells more; 'kith --version' tells the version.\n", out);
  fputs("\nEnvironment:\n", out);
  for (const help_variable *variable = ENVIRONMENT; variable->name; variable++)
    fprintf(out, "  %s  %s\n", variable->name, variable->says);
  print_exit_codes(out);
}
