/* The options of every command: one table, from which arguments are parsed and --help and the man page made. */
#ifndef KITH_CLI_OPTIONS_H
#define KITH_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits, so that the table can say which commands take an option. */
typedef enum command_id {
  COMMAND_JOIN = 1,
  COMMAND_PLAN = 2,
  COMMAND_GEN = 4,
  COMMAND_INFO = 8,
  COMMAND_DEVICES = 16,
} command_id;

typedef enum data_kind { DATA_UNIF, DATA_EXPO, DATA_GAUSS, DATA_LATTICE } data_kind;
#define DATA_KINDS "unif|expo|gauss|lattice"

enum { MAX_ARGUMENTS = 3 };

/* What the user asked for; 0 and NULL where nothing was said, except for the defaults that --help names. */
typedef struct cli_options {
  char *arguments[MAX_ARGUMENTS + 1]; /* the words that are not options */
  int n_arguments;
  bool eps_given, n_given, lambda_given, help;

  double eps;
  char *eps_column;
  bool self, half;
  int metric; /* a kith_metric */
  double radius;
  char *box;
  int what; /* a kith_what */
  char *output;
  char *checkpoint;
  double checkpoint_seconds;
  bool sorted, distances, json, quiet;
  char *columns, *columns_b;
  bool skip_invalid;
  int format; /* 0: from the name; else 1 + its position in the table's choices */
  uint64_t threads, memory, device_memory;
  char *device;
  int engine;    /* 0: auto, 1: cpu, ... */
  int partition; /* a kith_partition */
  char *trace;
  bool calibrate;
  uint64_t batch_rows, index_dims;
  double cell_side;
  int kernel, cells, order; /* a kith_kernel, kith_cells, kith_order */
  uint64_t threads_per_query;
  int algorithm; /* a kith_algorithm */
  bool brute, no_reorder, no_sortidu, no_shortc;

  uint64_t n, dim, seed;
  int dtype; /* 0: f4, 1: f8 */
  double lambda;
} cli_options;

typedef enum option_kind {
  OPTION_FLAG,
  OPTION_TEXT,
  OPTION_CHOICE, /* int: position in choices, plus `low` */
  OPTION_COUNT,
  OPTION_SIZE,
  OPTION_REAL,
} option_kind;

typedef struct option_entry {
  unsigned commands; /* command_id bits */
  const char *name;
  char letter; /* 0: none */
  const char *argument;
  option_kind kind;
  size_t field;       /* offset in cli_options */
  size_t given_field; /* offset of a bool to set; 0: none */
  double low, high;   /* allowed range of numbers */
  const char *choices;
  const char *help;  /* one line */
  const char *group; /* heading in --help */
} option_entry;

extern const option_entry OPTIONS[]; /* ends with a NULL name */

/* Parses argv[1...] for one command; argv[0] is the command's name. Returns an exit code, after printing what
 * was wrong. Free the options in either case. */
int options_parse(cli_options *options, command_id id, int argc, const char **argv);
void options_free(cli_options *options);

#endif
