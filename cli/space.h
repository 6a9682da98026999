/* The space of a join, as the command line has it: --metric, --radius, --box and --eps-column. */
#ifndef KITH_CLI_SPACE_H
#define KITH_CLI_SPACE_H

#include "session.h"

#include <stdio.h>

/* Whether --columns has the column of --eps-column, by the same word. */
bool space_radius_is_listed(const cli_options *options);

/* The columns to open A with where both options are given: those of --columns and, behind them, that of
 * --eps-column. NULL: out of memory. The caller frees it. */
char *space_columns(const cli_options *options);

/* Takes the column of --eps-column out of the points of A, and reads --box. Returns an exit code, after saying
 * what was wrong; space_close is to be called in either case. */
int space_open(session *s, const cli_options *options);
void space_close(session *s);

/* Column c of the points of a file as its reader knows it: by its name there, in quotes, or by its number. */
void space_column_name(const session *s, const kith_file *file, uint32_t c, char *out, size_t size);

void space_join_options(const session *s, const cli_options *options, kith_join_options *join);

const char *space_metric_name(const cli_options *options);

/* What rows may be left out for. */
const char *space_invalid_rows(const cli_options *options);

/* A line about the space for the plan, unless it is the plain Euclidean one. */
void space_print(const cli_options *options, FILE *out);

#endif
