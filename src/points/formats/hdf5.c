/* Reads HDF5 through its C library: "file.h5:/path", where the path leads to
 *   a dataset of numbers, n x dim or n;
 *   a dataset of n records (a compound type), whose members are columns, or several where they are arrays;
 *   a group, whose datasets of n numbers are columns.
 * Without a path the file must hold one such dataset, or the columns chosen are datasets of its root.
 *
 * hdf5_data.c reads datasets; here they are found. One thread at a time is in here, for the library may not be
 * thread-safe; its error printing is off meanwhile. Damaged files are as safe as that library is. */
#include "points/formats/hdf5.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- Groups ------------------------------------------------------------------------------------------- */

/* A walk over the links of a group. */
typedef struct h5_listing {
  const kith_input *input;
  kith_fields names;
  kith_status status;
} h5_listing;

/* Why a dataset cannot be a column; NULL if it can. */
static const char *refuse_column(hid_t object) {
  if (H5Iget_type(object) != H5I_DATASET)
    return "other things";
  hid_t type = H5Dget_type(object);
  const char *refusal = kith_h5_element(type) ? NULL : kith_h5_describe_type(type);
  H5Tclose(type);
  return refusal || kith_h5_shape_of(object).n_axes == 1 ? refusal : "an array of other than one axis";
}

static herr_t list_column(hid_t group, const char *name, const H5L_info_t *info, void *argument) {
  (void)info;
  h5_listing *listing = argument;
  hid_t object = H5Oopen(group, name, H5P_DEFAULT);
  listing->status = kith_check_cancel(listing->input->ctx);
  if (!listing->status)
    listing->status = kith_fields_add(listing->input->ctx, &listing->names, name,
                                      object < 0 ? "nothing (a broken link)" : refuse_column(object), 1);
  if (object >= 0)
    H5Oclose(object);
  H5Eclear2(H5E_DEFAULT);
  return listing->status ? -1 : 0;
}

static kith_status list_columns(hid_t group, h5_listing *listing) {
  herr_t result = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, list_column, listing);
  return listing->status ? listing->status
         : result < 0    ? kith_h5_fail(listing->input, "list the group")
                         : KITH_OK;
}

/* One column of a group: what there is to know before it is read. */
typedef struct h5_column {
  hid_t dataset;
  h5_shape shape;
  h5_item item;
} h5_column;

static kith_status open_column(const kith_input *input, hid_t group, const char *name, h5_column *column) {
  column->dataset = H5Dopen2(group, name, H5P_DEFAULT);
  if (column->dataset < 0)
    return kith_h5_fail(input, "open a column");
  column->shape = kith_h5_shape_of(column->dataset);
  hid_t type = H5Dget_type(column->dataset);
  column->item.element = kith_h5_element(type);
  H5Tclose(type);
  return column->item.element ? KITH_OK : kith_h5_fail(input, "read the type of a column");
}

/* Opens the chosen columns, which must be equally long. */
static kith_status open_columns(const kith_input *input, hid_t group, const kith_fields *fields,
                                const kith_columns *chosen, h5_column *columns) {
  kith_status status = KITH_OK;
  for (uint32_t c = 0; c < chosen->n && !status; c++) {
    const char *name = kith_fields_name(fields, chosen->at[c]);
    status = open_column(input, group, name, &columns[c]);
    columns[c].item.dim = c;
    if (!status && columns[c].shape.size[0] != columns[0].shape.size[0])
      status = kith_fail(input->ctx, KITH_ERR_FORMAT,
                         "%s: column '%s' has %" PRIu64 " rows, but '%s' has %" PRIu64
                         "; choose columns of one length",
                         input->name, name, (uint64_t)columns[c].shape.size[0],
                         kith_fields_name(fields, chosen->at[0]), (uint64_t)columns[0].shape.size[0]);
  }
  return status;
}

static kith_status read_columns(const kith_input *input, const h5_column *columns, uint32_t n,
                                kith_file *file) {
  kith_dtype dtype = KITH_F32;
  for (uint32_t c = 0; c < n; c++)
    dtype = columns[c].item.element->dtype == KITH_F64 ? KITH_F64 : dtype;
  kith_status status = kith_file_make_values(input, columns[0].shape.size[0], n, dtype, file);
  for (uint32_t c = 0; c < n && !status; c++) {
    const h5_item *item = &columns[c].item;
    h5_rows rows = {.input = input,
                    .file = file,
                    .dataset = columns[c].dataset,
                    .type = kith_h5_native_type(item->element),
                    .shape = columns[c].shape,
                    .row_bytes = item->element->bytes,
                    .items = item,
                    .n_items = 1};
    status = kith_h5_read_rows(&rows);
  }
  return status;
}

/* Reads the datasets of a group as columns. */
static kith_status read_group(const kith_input *input, hid_t group, kith_file *file) {
  h5_listing listing = {.input = input};
  kith_columns chosen = {0};
  h5_column *columns = NULL;
  uint32_t dim = 0;
  kith_status status = list_columns(group, &listing);
  if (!status)
    status = kith_fields_choose(input, &listing.names, &chosen, &dim);
  if (!status)
    status = kith_fields_pick(input->ctx, &listing.names, &chosen, &file->names);
  if (!status) {
    columns = kith_alloc(&input->ctx->memory, dim * sizeof *columns);
    status = columns ? KITH_OK : kith_fail_memory(input->ctx, dim * sizeof *columns, "the columns of a file");
  }
  for (uint32_t c = 0; c < dim && columns; c++)
    columns[c] = (h5_column){.dataset = -1};
  if (!status)
    status = open_columns(input, group, &listing.names, &chosen, columns);
  if (!status)
    status = read_columns(input, columns, dim, file);
  for (uint32_t c = 0; c < dim && columns; c++)
    if (columns[c].dataset >= 0)
      H5Dclose(columns[c].dataset);
  kith_free(columns);
  kith_fields_free(&listing.names);
  return status;
}

/* ---- The file ----------------------------------------------------------------------------------------- */

static kith_status read_object(const kith_input *input, hid_t object, kith_file *file) {
  switch (H5Iget_type(object)) {
  case H5I_DATASET:
    return kith_h5_read_dataset(input, object, file);
  case H5I_GROUP:
    return read_group(input, object, file);
  default:
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: this is neither a dataset nor a group", input->name);
  }
}

/* Takes a dataset that may be points into the listing, with its whole path. */
static herr_t list_dataset(hid_t root, const char *name, const H5L_info_t *info, void *argument) {
  h5_listing *listing = argument;
  listing->status = kith_check_cancel(listing->input->ctx);
  hid_t object = info->type == H5L_TYPE_HARD ? H5Oopen(root, name, H5P_DEFAULT) : -1;
  char path[1024];
  if (object >= 0 && H5Iget_type(object) == H5I_DATASET && kith_h5_holds_points(object) && !listing->status) {
    snprintf(path, sizeof path, "/%s", name);
    listing->status = kith_fields_add(listing->input->ctx, &listing->names, path, NULL, 1);
  }
  if (object >= 0)
    H5Oclose(object);
  return listing->status ? -1 : 0;
}

static kith_status list_datasets(hid_t h5, h5_listing *listing) {
  herr_t result = H5Lvisit(h5, H5_INDEX_NAME, H5_ITER_INC, list_dataset, listing);
  return listing->status ? listing->status
         : result < 0    ? kith_h5_fail(listing->input, "list the file")
                         : KITH_OK;
}

/* Says what could have been chosen; `what` is what went wrong. */
static kith_status fail_choice(const h5_listing *listing, const char *what) {
  const kith_input *input = listing->input;
  char list[512] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < listing->names.n; i++) {
    const char *name = kith_fields_name(&listing->names, i);
    if (used + strlen(name) + sizeof ", ..." > sizeof list) {
      snprintf(list + used, sizeof list - used, "%s...", used ? ", " : "");
      break;
    }
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", name);
  }
  if (listing->names.n == 0)
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: there is no dataset of numbers with one or two axes, nor of records", input->path);
  return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "%s: %s; choose one, as in %s:%s; there are: %s", input->path,
                   what, input->path, kith_fields_name(&listing->names, 0), list);
}

/* Reads the one dataset of a file, or the columns of its root. */
static kith_status read_whole(const kith_input *input, hid_t h5, kith_file *file) {
  h5_listing listing = {.input = input};
  kith_status status = list_datasets(h5, &listing);
  hid_t object = -1;
  if (!status && listing.names.n != 1 && !(listing.names.n > 1 && input->columns))
    status = fail_choice(&listing, "there are several datasets");
  if (!status) {
    object = H5Oopen(h5, listing.names.n == 1 ? kith_fields_name(&listing.names, 0) : "/", H5P_DEFAULT);
    status = object < 0 ? kith_h5_fail(input, "open the dataset") : read_object(input, object, file);
  }
  if (object >= 0)
    H5Oclose(object);
  kith_fields_free(&listing.names);
  return status;
}

static kith_status read_part(const kith_input *input, hid_t h5, kith_file *file) {
  hid_t object = H5Oopen(h5, input->part, H5P_DEFAULT);
  if (object >= 0) {
    kith_status status = read_object(input, object, file);
    H5Oclose(object);
    return status;
  }
  H5Eclear2(H5E_DEFAULT);
  h5_listing listing = {.input = input};
  char what[200];
  snprintf(what, sizeof what, "there is no '%s' in it", input->part);
  kith_status status = list_datasets(h5, &listing);
  if (!status)
    status = fail_choice(&listing, what);
  kith_fields_free(&listing.names);
  return status;
}

static kith_status read_file(const kith_input *input, kith_file *file) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  H5Pset_file_locking(access, true,
                      true); /* where the file system has locks, and no failure where it has none */
#endif
  hid_t h5 = H5Fopen(input->path, H5F_ACC_RDONLY, access);
  kith_status status = h5 < 0        ? kith_h5_fail(input, "open the file")
                       : input->part ? read_part(input, h5, file)
                                     : read_whole(input, h5, file);
  if (h5 >= 0)
    H5Fclose(h5);
  H5Pclose(access);
  return status;
}

kith_status kith_read_hdf5(const kith_input *input, kith_file *file) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  kith_status status;
  H5E_auto2_t print = NULL;
  void *print_argument = NULL;
  if (H5open() < 0) {
    status = kith_fail(input->ctx, KITH_ERR_MEMORY, "%s: the HDF5 library does not start", input->name);
  } else {
    H5Eget_auto2(H5E_DEFAULT, &print, &print_argument);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    status = read_file(input, file);
    H5Eset_auto2(H5E_DEFAULT, print, print_argument);
  }
  pthread_mutex_unlock(&lock);
  return status;
}
