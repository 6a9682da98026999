/* What the readers of files share: the input they read, the file they fill, columns and their names.
 *
 * Owns: struct kith_file, the choice of columns, arrays of elements. Only points/file.c and the readers
 * include it. A reader gets an open input and fills in file->points plus whatever owns their memory; on
 * failure it leaves a message, and file.c releases what the reader had put into the file. */
#ifndef KITH_POINTS_FORMATS_FORMATS_H
#define KITH_POINTS_FORMATS_FORMATS_H

#include "points/points.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(void *) == 8,
               "the readers are for 64-bit little-endian hosts");

/* Column names, in one block of memory: the pointers, then the texts. An empty text means "no name". */
typedef struct kith_names {
  uint32_t n;
  char **name; /* NULL: there are no names */
} kith_names;

/* Which columns of the file become dimensions, in the order of the dimensions. */
typedef struct kith_columns {
  uint32_t n;
  uint32_t at[KITH_MAX_DIM];
} kith_columns;

typedef struct kith_input {
  kith_context *ctx;
  const char *name;    /* how messages call it: the path, or "standard input" */
  const char *ending;  /* of the path, with the dot; "" if there is none */
  const char *columns; /* the option: NULL for all */
  bool is_stdin;
  int fd;
  const char *bytes; /* the whole file, mapped; NULL for a pipe */
  uint64_t n_bytes;
} kith_input;

struct kith_file {
  kith_points points;
  char *path;
  kith_names names; /* of the dimensions */
  void *values;     /* the points, where they had to be converted or parsed; else NULL */
  void *map;        /* the points, where the file itself serves; else NULL */
  uint64_t map_bytes;
  bool keeps_map; /* set by a reader whose points lie in input->bytes */
};

kith_status kith_read_npy(const kith_input *input, kith_file *file);
kith_status kith_read_text(const kith_input *input, kith_file *file);
kith_status kith_read_fbin(const kith_input *input, kith_file *file);

/* Chooses columns out of n_columns as input->columns says; names may be NULL. */
kith_status kith_columns_choose(const kith_input *input, const kith_names *names, uint64_t n_columns,
                                kith_columns *chosen);

/* Copies the names of the chosen columns. */
kith_status kith_names_pick(kith_context *ctx, const kith_names *names, const kith_columns *chosen,
                            kith_names *picked);

/* A type of number in a file, and the type of points it becomes. */
typedef struct kith_element {
  const char *code; /* numpy's: kind and size */
  const char *name;
  char kind; /* 'f', 'i', 'u' or 'b' */
  uint8_t bytes;
  kith_dtype dtype;
} kith_element;

/* The element with numpy's code, such as "f4"; NULL if the readers do not take it. */
const kith_element *kith_element_find(const char *code);

/* A matrix of elements that lies in input->bytes. */
typedef struct kith_array {
  const char *data;
  uint64_t n_rows, n_columns;
  int64_t row_stride, column_stride;
  const kith_element *element;
  bool swapped; /* big-endian */
} kith_array;

/* Makes the array the points of the file: a view where type, byte order, alignment and choice of columns
 * allow it, else a copy. The array must lie within the input. */
kith_status kith_file_take_array(const kith_input *input, const kith_array *array, kith_file *file);

#endif
