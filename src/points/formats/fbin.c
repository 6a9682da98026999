/* Reads .fbin: a 32-bit number of rows, a 32-bit number of columns, then float32 rows, little-endian.
 *
 * The form of the billion-scale vector benchmarks. Always mapped, copied only for a choice of columns that
 * no stride can express. O(1) apart from such a copy. */
#include "points/formats/formats.h"

#include <string.h>

enum { FBIN_HEADER_BYTES = 8 };

kith_status kith_read_fbin(const kith_input *input, kith_file *file) {
  uint32_t shape[2];
  if (input->n_bytes < FBIN_HEADER_BYTES)
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: an fbin file begins with 8 bytes for its shape, but the file holds only %llu",
                     input->name, (unsigned long long)input->n_bytes);
  memcpy(shape, input->bytes, sizeof shape);
  uint64_t values = (uint64_t)shape[0] * shape[1], held = input->n_bytes - FBIN_HEADER_BYTES;
  if (held % sizeof(float) != 0 || held / sizeof(float) != values)
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: the header promises %u x %u float32 values, but the file holds %llu byte%s of data%s",
                     input->name, shape[0], shape[1], (unsigned long long)held, held == 1 ? "" : "s",
                     held / sizeof(float) < values ? "; was it cut short?" : "; is it an fbin file?");
  kith_array array = {.data = input->bytes + FBIN_HEADER_BYTES,
                      .n_rows = shape[0],
                      .n_columns = shape[1],
                      .row_stride = (int64_t)shape[1] * (int64_t)sizeof(float),
                      .column_stride = sizeof(float),
                      .element = kith_element_find("f4")};
  return kith_file_take_array(input, &array, file);
}
