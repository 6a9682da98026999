/* The man page, in roff, made from the same tables as --help. */
#include "commands.h"
#include "errors.h"
#include "kith.h"

#include <string.h>

/* Text that roff takes as it is: no line starts a request, dashes stay dashes. */
static void print_text(const char *text, FILE *out) {
  for (bool at_start = true; *text; text++) {
    if (at_start && (*text == '.' || *text == '\''))
      fputs("\\&", out);
    if (*text == '-' || *text == '\\')
      fputs(*text == '-' ? "\\-" : "\\e", out);
    else
      fputc(*text, out);
    at_start = *text == '\n';
  }
  fputc('\n', out);
}

static void print_examples(const command_example *examples, FILE *out) {
  for (; examples->line; examples++) {
    fputs(".PP\n.nf\n.B ", out);
    print_text(examples->line, out);
    fputs(".fi\n", out);
    if (examples->says) {
      fputs(".RS\n", out);
      print_text(examples->says, out);
      fputs(".RE\n", out);
    }
  }
}

static void print_option(const option_entry *option, FILE *out) {
  fputs(".TP\n.B ", out);
  if (option->letter)
    fprintf(out, "\\-%c, ", option->letter);
  fputs("\\-\\-", out);
  for (const char *at = option->name; *at; at++)
    fputs(*at == '-' ? "\\-" : (char[]){*at, '\0'}, out);
  if (option->argument)
    fprintf(out, " \\fI%s\\fR", option->argument);
  fputc('\n', out);
  print_text(option->help, out);
}

static void print_command(const command_entry *command, FILE *out) {
  fprintf(out, ".SS kith %s\n", command->name);
  print_text(command->summary, out);
  fputs(".PP\n.nf\n", out);
  print_text(command->about, out);
  fputs(".fi\n", out);
  for (const option_entry *option = OPTIONS; option->name; option++)
    /* plan takes the options of join, which its text says; once is enough. */
    if (option->commands & command->id && command->id != COMMAND_PLAN && strcmp(option->name, "help") != 0)
      print_option(option, out);
  fputs(".PP\nExamples:\n", out);
  print_examples(command->examples, out);
}

static void print_synopsis(FILE *out) {
  fputs(".SH SYNOPSIS\n.nf\n", out);
  for (const command_entry *command = COMMANDS; command->name; command++)
    for (const char *const *usage = command->usage; *usage; usage++) {
      fputs("\\fBkith\\fR ", out);
      print_text(*usage, out);
    }
  fputs("\\fBkith\\fR help [COMMAND]\n\\fBkith\\fR \\-\\-version\n.fi\n", out);
}

void man_print(FILE *out) {
  fprintf(out, ".TH KITH 1 \"\" \"kith %s\" \"User Commands\"\n.SH NAME\nkith \\- ", KITH_VERSION);
  print_text(PROGRAM_SUMMARY, out);
  print_synopsis(out);
  fputs(".SH DESCRIPTION\n"
        "kith finds all pairs of points that lie within a distance of each other, exactly: the result is the\n"
        "same from every engine, instruction set, number of threads and size of batch.\n",
        out);
  fputs(".SH FIRST STEPS\n", out);
  print_examples(FIRST_STEPS, out);
  fputs(".SH COMMANDS\n", out);
  for (const command_entry *command = COMMANDS; command->name; command++)
    print_command(command, out);
  fputs(".SH EXIT STATUS\n", out);
  for (const cli_exit_code *code = CLI_EXIT_CODES; code->meaning; code++) {
    fprintf(out, ".TP\n.B %d\n", code->code);
    print_text(code->meaning, out);
  }
  fputs(".SH ENVIRONMENT\n", out);
  for (const help_variable *variable = ENVIRONMENT; variable->name; variable++) {
    fprintf(out, ".TP\n.B %s\n", variable->name);
    print_text(variable->says, out);
  }
}
