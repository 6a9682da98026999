/* The commands: one table of names, texts and functions, for dispatch, --help and the man page. */
#ifndef KITH_CLI_COMMANDS_H
#define KITH_CLI_COMMANDS_H

#include "options.h"

#include <stdio.h>

typedef struct command_example {
  const char *line;
  const char *says; /* what it does; NULL: nothing to add */
} command_example;

typedef struct command_entry {
  command_id id;
  const char *name;
  const char *usage[3];         /* forms, without "kith"; ends with NULL */
  const char *summary;          /* one line */
  const char *about;            /* a few sentences, broken into lines */
  command_example examples[12]; /* ends with a NULL line */
  int (*run)(const cli_options *options);
} command_entry;

extern const command_entry COMMANDS[]; /* ends with a NULL name */

/* Each returns an exit code. */
int command_join(const cli_options *options);
int command_plan(const cli_options *options);
int command_gen(const cli_options *options);
int command_info(const cli_options *options);
int command_devices(const cli_options *options);

/* The entry of that name, or NULL. */
const command_entry *command_find(const char *name);

/* Says that there is no such command, and which one may have been meant. Returns the exit code. */
int command_unknown(const char *name);

/* Prints the help of one command, of the whole program, or the man page. */
void help_command(const command_entry *command, FILE *out);
void help_program(FILE *out);
void man_print(FILE *out);

/* Words that --help and the man page share. */
typedef struct help_variable {
  const char *name, *says;
} help_variable;
extern const help_variable ENVIRONMENT[]; /* ends with a NULL name */
extern const command_example FIRST_STEPS[];
extern const char PROGRAM_SUMMARY[];

#endif
