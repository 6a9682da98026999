/* HDF5: what the two halves of its reader share. hdf5_data.c turns a dataset into points; hdf5.c finds it.
 *
 * Only these two include it. */
#ifndef KITH_POINTS_FORMATS_HDF5_H
#define KITH_POINTS_FORMATS_HDF5_H

#include "points/formats/formats.h"

#include <hdf5.h>

enum { H5_AXES_MOST = 2 };

typedef struct h5_shape {
  int n_axes;
  hsize_t size[H5_AXES_MOST]; /* of the first axes; 1 where there is none */
} h5_shape;

/* Where a dimension lies in a row that was read. */
typedef struct h5_item {
  uint64_t offset;
  const kith_element *element;
  uint32_t dim;
} h5_item;

/* Rows of a dataset, on their way into the points. */
typedef struct h5_rows {
  const kith_input *input;
  kith_file *file;
  hid_t dataset, type; /* of an entry, in memory */
  h5_shape shape;
  uint64_t row_bytes; /* in memory */
  const h5_item *items;
  uint32_t n_items;
} h5_rows;

/* The failure of a call of the library, with what the library says about it. */
kith_status kith_h5_fail(const kith_input *input, const char *what);

/* The type of number that a type of the file is; NULL if it is none. */
const kith_element *kith_h5_element(hid_t type);

/* The same in memory; owned by the library. */
hid_t kith_h5_native_type(const kith_element *element);

/* What a type holds that is no number. */
const char *kith_h5_describe_type(hid_t type);

/* The shape of a dataset; n_axes is -1 where the library cannot tell. */
h5_shape kith_h5_shape_of(hid_t dataset);

/* Whether a dataset may be a set of points, without regard to its size. */
bool kith_h5_holds_points(hid_t dataset);

/* Reads the rows of a dataset into the values of the file, which are there already. */
kith_status kith_h5_read_rows(const h5_rows *rows);

/* Reads a dataset of numbers or of records. */
kith_status kith_h5_read_dataset(const kith_input *input, hid_t dataset, kith_file *file);

#endif
