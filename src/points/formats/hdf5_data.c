/* Datasets of HDF5: see hdf5.h.
 *
 * Rows are read in pieces of a few MiB, whole chunks where the dataset has them, in the element type of the
 * file, and converted as npy.c converts: exactly or not at all. HDF5's own buffers (a chunk or so) are outside
 * the budget. */
#include "points/formats/hdf5.h"

#include <stdio.h>
#include <string.h>

enum { PIECE_BYTES = 4 << 20, PIECE_MOST = 64 << 20 };

/* ---- Errors ------------------------------------------------------------------------------------------- */

/* Keeps the innermost error, which says most: the walk begins there. */
static herr_t first_error(unsigned n, const H5E_error2_t *error, void *out) {
  if (n == 0 && error->desc)
    snprintf(out, 200, "%s", error->desc);
  return 0;
}

kith_status kith_h5_fail(const kith_input *input, const char *what) {
  char text[200] = "it does not say why";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_error, text);
  H5Eclear2(H5E_DEFAULT);
  return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: HDF5 cannot %s: %s", input->name, what, text);
}

/* ---- Types and shapes --------------------------------------------------------------------------------- */

const kith_element *kith_h5_element(hid_t type) {
  size_t size = H5Tget_size(type);
  H5T_class_t class = H5Tget_class(type);
  if (class == H5T_FLOAT)
    return size <= 4 ? kith_element_find("f4") : size <= 8 ? kith_element_find("f8") : NULL;
  if (class != H5T_INTEGER || size > 8)
    return NULL;
  char code[] = {H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i', (char)('0' + size), '\0'};
  return kith_element_find(code);
}

hid_t kith_h5_native_type(const kith_element *element) {
  if (element->kind == 'f')
    return element->bytes == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  bool is_signed = element->kind == 'i';
  switch (element->bytes) {
  case 1:
    return is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
  case 2:
    return is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
  case 4:
    return is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
  default:
    return is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
  }
}

const char *kith_h5_describe_type(hid_t type) {
  switch (H5Tget_class(type)) {
  case H5T_STRING:
    return "text";
  case H5T_COMPOUND:
    return "records";
  case H5T_ENUM:
    return "names (an enumeration)";
  case H5T_REFERENCE:
    return "references";
  case H5T_VLEN:
    return "lists of varying length";
  case H5T_ARRAY:
    return "arrays";
  case H5T_FLOAT:
    return "numbers of extended precision";
  case H5T_INTEGER:
    return "integers of an odd size";
  default:
    return "raw bytes";
  }
}

h5_shape kith_h5_shape_of(hid_t dataset) {
  h5_shape shape = {-1, {1, 1}};
  hid_t space = H5Dget_space(dataset);
  if (space < 0)
    return shape;
  shape.n_axes = H5Sget_simple_extent_ndims(space);
  if (shape.n_axes >= 0 && shape.n_axes <= H5_AXES_MOST &&
      H5Sget_simple_extent_dims(space, shape.size, NULL) < 0)
    shape.n_axes = -1;
  H5Sclose(space);
  return shape;
}

bool kith_h5_holds_points(hid_t dataset) {
  h5_shape shape = kith_h5_shape_of(dataset);
  hid_t type = H5Dget_type(dataset);
  bool is_records = H5Tget_class(type) == H5T_COMPOUND;
  bool suits = is_records ? shape.n_axes == 1 : shape.n_axes >= 1 && shape.n_axes <= 2 && kith_h5_element(type);
  H5Tclose(type);
  return suits;
}

/* ---- Rows --------------------------------------------------------------------------------------------- */

/* Rows to read at once: whole chunks where that is not too much, since each is unpacked as a whole. */
static uint64_t piece_rows(const h5_rows *rows) {
  uint64_t n = PIECE_BYTES / rows->row_bytes, n_rows = rows->shape.size[0];
  n = n ? n : 1;
  hid_t plist = H5Dget_create_plist(rows->dataset);
  hsize_t chunk[H5_AXES_MOST] = {0};
  if (plist >= 0 && H5Pget_layout(plist) == H5D_CHUNKED && H5Pget_chunk(plist, H5_AXES_MOST, chunk) > 0 &&
      chunk[0] > 0 && chunk[0] <= PIECE_MOST / rows->row_bytes)
    n = n > chunk[0] ? n - n % chunk[0] : chunk[0];
  H5Pclose(plist);
  return n < n_rows ? n : n_rows;
}

static bool read_piece(const h5_rows *rows, hid_t space, uint64_t first, uint64_t n, void *buffer) {
  hsize_t start[H5_AXES_MOST] = {first, 0}, count[H5_AXES_MOST] = {n, rows->shape.size[1]};
  hid_t memory = H5Screate_simple(rows->shape.n_axes, count, NULL);
  bool is_read = memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                 H5Dread(rows->dataset, rows->type, memory, space, H5P_DEFAULT, buffer) >= 0;
  if (memory >= 0)
    H5Sclose(memory);
  return is_read;
}

static kith_status convert_piece(const h5_rows *rows, uint64_t first, uint64_t n, const char *buffer) {
  const kith_points *points = &rows->file->points;
  for (uint32_t i = 0; i < rows->n_items; i++) {
    const h5_item *item = &rows->items[i];
    kith_element_run run = {.from = buffer + item->offset,
                            .from_stride = (int64_t)rows->row_bytes,
                            .to = (char *)rows->file->values + (int64_t)first * points->row_stride +
                                  (int64_t)item->dim * points->col_stride,
                            .to_stride = points->row_stride,
                            .n = n,
                            .element = item->element,
                            .dtype = points->dtype};
    uint64_t done = kith_elements_convert(&run);
    if (done == n)
      continue;
    uint64_t bits;
    memcpy(&bits, run.from + (int64_t)done * run.from_stride, sizeof bits);
    char number[16];
    const char *name = kith_file_column(rows->file, item->dim);
    snprintf(number, sizeof number, "%u", item->dim);
    return kith_fail_inexact(rows->input, item->element, bits, first + done, name ? name : number);
  }
  return KITH_OK;
}

kith_status kith_h5_read_rows(const h5_rows *rows) {
  kith_context *ctx = rows->input->ctx;
  uint64_t n_rows = rows->shape.size[0], bytes;
  if (n_rows == 0 || rows->row_bytes == 0)
    return KITH_OK;
  uint64_t at_once = piece_rows(rows);
  if (__builtin_mul_overflow(at_once, rows->row_bytes, &bytes))
    bytes = UINT64_MAX;
  char *buffer = kith_alloc(&ctx->memory, bytes);
  if (!buffer)
    return kith_fail_memory(ctx, bytes, rows->input->name);
  hid_t space = H5Dget_space(rows->dataset);
  kith_status status = space < 0 ? kith_h5_fail(rows->input, "describe the data") : KITH_OK;
  for (uint64_t first = 0; first < n_rows && !status; first += at_once) {
    uint64_t n = n_rows - first < at_once ? n_rows - first : at_once;
    status = kith_check_cancel(ctx);
    if (!status && !read_piece(rows, space, first, n, buffer))
      status = kith_h5_fail(rows->input, "read the data");
    if (!status)
      status = convert_piece(rows, first, n, buffer);
  }
  if (space >= 0)
    H5Sclose(space);
  kith_free(buffer);
  return status;
}

/* ---- Arrays ------------------------------------------------------------------------------------------- */

static kith_status alloc_items(const kith_input *input, uint32_t n, h5_item **items) {
  *items = kith_alloc(&input->ctx->memory, n * sizeof **items);
  return *items ? KITH_OK : kith_fail_memory(input->ctx, n * sizeof **items, "the columns of a file");
}

/* Reads a dataset of numbers. */
static kith_status read_array(const kith_input *input, hid_t dataset, const kith_element *element,
                              kith_file *file) {
  h5_rows rows = {.input = input, .file = file, .dataset = dataset, .shape = kith_h5_shape_of(dataset)};
  if (rows.shape.n_axes < 1 || rows.shape.n_axes > 2)
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: the dataset has %d axes; points need two, (n, dim), or one for dimension 1",
                     input->name, rows.shape.n_axes);
  if (rows.shape.size[1] == 0)
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: the dataset has no columns; points need at least one",
                     input->name);
  kith_columns chosen;
  h5_item *items = NULL;
  kith_status status = kith_columns_choose(input, NULL, rows.shape.size[1], &chosen);
  if (!status && __builtin_mul_overflow(rows.shape.size[1], (uint64_t)element->bytes, &rows.row_bytes))
    status = kith_fail_memory(input->ctx, UINT64_MAX, input->name);
  if (!status)
    status = alloc_items(input, chosen.n, &items);
  for (uint32_t c = 0; !status && c < chosen.n; c++)
    items[c] = (h5_item){(uint64_t)chosen.at[c] * element->bytes, element, c};
  if (!status)
    status = kith_file_make_values(input, rows.shape.size[0], chosen.n, element->dtype, file);
  rows.type = kith_h5_native_type(element);
  rows.items = items;
  rows.n_items = chosen.n;
  if (!status)
    status = kith_h5_read_rows(&rows);
  kith_free(items);
  return status;
}

/* ---- Records ------------------------------------------------------------------------------------------ */

/* A member of a record: its element, or that of an array and how long it is. */
typedef struct h5_member {
  const kith_element *element; /* NULL: no numbers */
  uint64_t repeat;
  const char *refusal;
} h5_member;

static h5_member look_at_member(hid_t records, unsigned i) {
  h5_member member = {.repeat = 1};
  hid_t type = H5Tget_member_type(records, i), base = -1;
  hsize_t size[H5S_MAX_RANK];
  int n_axes = H5Tget_class(type) == H5T_ARRAY ? H5Tget_array_dims2(type, size) : 0;
  for (int axis = 0; axis < n_axes; axis++)
    if (__builtin_mul_overflow(member.repeat, size[axis], &member.repeat))
      member.repeat = UINT64_MAX / 16;
  if (n_axes > 0)
    base = H5Tget_super(type);
  member.element = kith_h5_element(base >= 0 ? base : type);
  member.refusal = member.element ? NULL : kith_h5_describe_type(base >= 0 ? base : type);
  if (base >= 0)
    H5Tclose(base);
  H5Tclose(type);
  return member;
}

static kith_status list_members(const kith_input *input, hid_t records, kith_fields *fields) {
  kith_status status = KITH_OK;
  int n = H5Tget_nmembers(records);
  for (int i = 0; i < n && !status; i++) {
    char *name = H5Tget_member_name(records, (unsigned)i);
    h5_member member = look_at_member(records, (unsigned)i);
    status = name ? kith_fields_add(input->ctx, fields, name, member.refusal, member.repeat)
                  : kith_h5_fail(input, "name a member");
    H5free_memory(name);
  }
  return status;
}

/* Adds member i of the records to the type in memory; an array keeps its axes, as HDF5 wants it. */
static bool insert_member(const h5_rows *rows, hid_t records, unsigned i, const char *name, uint64_t offset) {
  hsize_t size[H5S_MAX_RANK];
  hid_t native = kith_h5_native_type(look_at_member(records, i).element);
  hid_t type = H5Tget_member_type(records, i), array = -1;
  int n_axes = H5Tget_class(type) == H5T_ARRAY ? H5Tget_array_dims2(type, size) : 0;
  if (n_axes > 0)
    array = H5Tarray_create2(native, (unsigned)n_axes, size);
  bool is_inserted = H5Tinsert(rows->type, name, offset, array >= 0 ? array : native) >= 0;
  if (array >= 0)
    H5Tclose(array);
  H5Tclose(type);
  return is_inserted;
}

/* Lays the chosen members out in memory, and says where each dimension lies. */
static kith_status lay_out(h5_rows *rows, hid_t records, const kith_fields *fields, const kith_columns *chosen,
                           h5_item *items) {
  rows->n_items = 0;
  for (int pass = 0; pass < 2; pass++) { /* the type must have its size before it takes members */
    uint64_t offset = 0;
    if (pass == 1)
      rows->type = H5Tcreate(H5T_COMPOUND, rows->row_bytes);
    for (uint32_t c = 0; c < chosen->n; c++) {
      h5_member member = look_at_member(records, chosen->at[c]);
      if (!member.element)
        return kith_h5_fail(rows->input, "read the type of a member");
      if (pass == 1 &&
          !insert_member(rows, records, chosen->at[c], kith_fields_name(fields, chosen->at[c]), offset))
        return kith_h5_fail(rows->input, "lay the records out");
      for (uint64_t i = 0; pass == 1 && i < member.repeat; i++, rows->n_items++)
        items[rows->n_items] = (h5_item){offset + i * member.element->bytes, member.element, rows->n_items};
      offset += member.repeat * member.element->bytes;
    }
    rows->row_bytes = offset;
  }
  return KITH_OK;
}

static kith_dtype widest(const h5_item *items, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (items[i].element->dtype == KITH_F64)
      return KITH_F64;
  return KITH_F32;
}

/* Reads a dataset of records. */
static kith_status read_records(const kith_input *input, hid_t dataset, hid_t records, kith_file *file) {
  h5_rows rows = {
      .input = input, .file = file, .dataset = dataset, .type = -1, .shape = kith_h5_shape_of(dataset)};
  if (rows.shape.n_axes != 1)
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: the records have %d axes; points need one", input->name,
                     rows.shape.n_axes);
  kith_fields fields = {0};
  kith_columns chosen;
  h5_item *items = NULL;
  uint32_t dim = 0;
  kith_status status = list_members(input, records, &fields);
  if (!status)
    status = kith_fields_choose(input, &fields, &chosen, &dim);
  if (!status)
    status = kith_fields_pick(input->ctx, &fields, &chosen, &file->names);
  if (!status)
    status = alloc_items(input, dim, &items);
  if (!status)
    status = lay_out(&rows, records, &fields, &chosen, items);
  rows.items = items;
  if (!status)
    status = kith_file_make_values(input, rows.shape.size[0], dim, widest(items, dim), file);
  if (!status)
    status = kith_h5_read_rows(&rows);
  if (rows.type >= 0)
    H5Tclose(rows.type);
  kith_free(items);
  kith_fields_free(&fields);
  return status;
}

kith_status kith_h5_read_dataset(const kith_input *input, hid_t dataset, kith_file *file) {
  hid_t type = H5Dget_type(dataset);
  if (type < 0)
    return kith_h5_fail(input, "read the type of the dataset");
  const kith_element *element = kith_h5_element(type);
  kith_status status;
  if (element)
    status = read_array(input, dataset, element, file);
  else if (H5Tget_class(type) == H5T_COMPOUND)
    status = read_records(input, dataset, type, file);
  else
    status = kith_fail(input->ctx, KITH_ERR_FORMAT,
                       "%s: the dataset holds %s, but kith reads float32, float64 and integers", input->name,
                       kith_h5_describe_type(type));
  H5Tclose(type);
  return status;
}
