/* A neighbour table as .npz: the sparse matrix that scipy.sparse.load_npz opens.
 *
 * A zip archive of five arrays: format (b"csr"), shape, indptr, indices and data. The shape of the result is
 * exact when writing begins, so every member's place is laid out at once; indptr, indices and distances then
 * grow side by side in their regions, and headers with the checksums go in last. Members are stored as they
 * are, with zip64 fields only where a size or place needs them, and the date is fixed: the same result gives
 * the same bytes.
 *
 * Types. indptr and indices are both int32 while rows, columns and pairs are all below 2^31, which scipy takes
 * as they are. With more pairs indptr must be int64, but indices stay int32, for half the file.
 *
 * Without distances, data are ones as int32. Smaller types break: on bool, A @ A forgets counts, and
 * csgraph.laplacian and svds raise; int8 overflows silently in A @ A and in laplacian. int32 cannot overflow
 * in A @ A, since a row has fewer than 2^31 neighbours, and costs nothing on disk, since that member is
 * deflated: 13 bits for 258 bytes, made here by hand faster than any disk takes them. */
#include "sink/file_sink.h"

#include <string.h>
#include <zlib.h>

enum { M_FORMAT, M_SHAPE, M_INDPTR, M_INDICES, M_DATA, N_MEMBERS };

static const char *const NAMES[N_MEMBERS] = {"format.npy", "shape.npy", "indptr.npy", "indices.npy",
                                             "data.npy"};

typedef struct member {
  kith_npy_type type;
  uint64_t array_bytes; /* without the npy header */
  uint64_t bytes;       /* with it */
  uint64_t zip_bytes;   /* as it lies in the file: fewer if deflated */
  uint64_t header_at;   /* the local header of the zip format */
  uint64_t data_at;
  uint32_t crc;
  bool deflated;
} member;

typedef struct table_npz {
  kith_file_sink file;
  member members[N_MEMBERS];
  kith_appender indptr, indices, data;
  uint64_t directory_at;
  bool wide_indptr, wide_indices; /* int64 */
} table_npz;

/* ---- ones: a deflate stream written by hand ---- */

/* One stored block for the npy header, then one block of fixed codes: some ones literally, matches of 258
 * bytes at distance 4 for all the others, end of block. Codes are given as they go into the stream, lowest bit
 * first. */
enum {
  LITERAL_0 = 0x0c,
  LITERAL_1 = 0x8c,
  LITERAL_BITS = 8,
  MATCH = 0xa3 | 0x18 << 8,
  MATCH_BITS = 13,
  MATCH_BYTES = 258,
  END_BITS = 7,
  BLOCK_BITS = 3,
  STORED_BLOCK_BYTES = 5 + KITH_NPY_HEADER_BYTES,
};

/* How many bytes come as literals: what whole matches leave over, and at least the 4 they look back at. */
static uint64_t n_literals(uint64_t array_bytes) {
  uint64_t rest = array_bytes % MATCH_BYTES;
  return rest < 4 && array_bytes >= MATCH_BYTES ? rest + MATCH_BYTES : rest;
}

static uint64_t deflated_bytes(uint64_t array_bytes) {
  uint64_t literals = n_literals(array_bytes), matches = (array_bytes - literals) / MATCH_BYTES;
  uint64_t bits = BLOCK_BITS + LITERAL_BITS * literals + MATCH_BITS * matches + END_BITS;
  return STORED_BLOCK_BYTES + (bits + 7) / 8;
}

typedef struct bit_writer {
  kith_appender *appender;
  uint64_t bits;
  unsigned count; /* below 32 between calls */
} bit_writer;

static kith_status put_bits(bit_writer *writer, uint32_t bits, unsigned count) {
  writer->bits |= (uint64_t)bits << writer->count;
  writer->count += count;
  if (writer->count < 32)
    return KITH_OK;
  kith_status status = kith_appender_reserve(writer->appender, 4);
  if (status)
    return status;
  memcpy(kith_appender_end(writer->appender), &writer->bits, 4);
  writer->appender->filled += 4;
  writer->bits >>= 32;
  writer->count -= 32;
  return KITH_OK;
}

static kith_status write_ones_block(kith_appender *appender, uint64_t array_bytes) {
  uint64_t literals = n_literals(array_bytes), matches = (array_bytes - literals) / MATCH_BYTES;
  bit_writer writer = {.appender = appender};
  kith_status status = put_bits(&writer, 3, BLOCK_BITS); /* the last block; fixed codes */
  for (uint64_t i = 0; !status && i < literals; i++)
    status = put_bits(&writer, i % 4 == 0 ? LITERAL_1 : LITERAL_0, LITERAL_BITS);
  for (uint64_t i = 0; !status && i < matches; i++)
    status = put_bits(&writer, MATCH, MATCH_BITS);
  if (!status)
    status = put_bits(&writer, 0, END_BITS);
  return status ? status : kith_appender_append(appender, &writer.bits, (writer.count + 7) / 8);
}

/* The CRC-32 of n ones (int32) after `crc`, by doubling. */
static uint32_t crc_of_ones(uint32_t crc, uint64_t n) {
  static const unsigned char ONE[4] = {1, 0, 0, 0};
  uLong power = crc32(0, ONE, sizeof ONE), total = crc;
  for (uint64_t bytes = sizeof ONE; n > 0; n >>= 1, bytes *= 2) {
    if (n & 1)
      total = crc32_combine(total, power, (z_off_t)bytes);
    power = crc32_combine(power, power, (z_off_t)bytes);
  }
  return (uint32_t)total;
}

static kith_status write_ones(kith_appender *appender, member *data) {
  unsigned char header[KITH_NPY_HEADER_BYTES];
  kith_npy_header(header, &data->type);
  data->crc = crc_of_ones((uint32_t)crc32(0, header, sizeof header), data->type.dims[0]);
  const unsigned char stored[5] = {0, sizeof header, 0, 0xff & ~sizeof header, 0xff};
  kith_status status = kith_appender_append(appender, stored, sizeof stored);
  if (!status)
    status = kith_appender_append(appender, header, sizeof header);
  return status ? status : write_ones_block(appender, data->array_bytes);
}

/* ---- the zip format ---- */

enum {
  LOCAL_BYTES = 30,
  CENTRAL_BYTES = 46,
  END_BYTES = 22,
  END64_BYTES = 56,
  LOCATOR64_BYTES = 20,
  EXTRA_HEAD_BYTES = 4,
  MOST_RECORD_BYTES = 128, /* a header with its name and extra field */
  DATE_1980 = 1 << 5 | 1,  /* the first day a zip file can name */
  VERSION_DEFLATE = 20,
  VERSION_64 = 45 /* needed to extract */
};
static const uint32_t FULL = UINT32_MAX; /* "look in the zip64 field" */

/* A record being put together, little-endian. */
typedef struct record {
  unsigned char bytes[MOST_RECORD_BYTES];
  size_t length;
} record;

static void put(record *to, uint64_t value, size_t bytes) {
  memcpy(to->bytes + to->length, &value, bytes);
  to->length += bytes;
}

static uint32_t clip(uint64_t value) { return value >= FULL ? FULL : (uint32_t)value; }

static bool sizes_need_64(const member *m) { return m->bytes >= FULL || m->zip_bytes >= FULL; }

/* The fields that local and central headers have in common, from the version on. */
static void put_common(record *to, const member *m, bool sizes_clipped, uint64_t extra_bytes) {
  bool full = sizes_clipped && sizes_need_64(m); /* a local header gives both sizes in 64 bits or none */
  put(to, extra_bytes ? VERSION_64 : VERSION_DEFLATE, 2);
  put(to, 0, 2); /* flags */
  put(to, m->deflated ? 8 : 0, 2);
  put(to, 0, 2); /* time */
  put(to, DATE_1980, 2);
  put(to, m->crc, 4);
  put(to, full ? FULL : clip(m->zip_bytes), 4);
  put(to, full ? FULL : clip(m->bytes), 4);
}

static uint64_t local_bytes(const member *m, const char *name) {
  return LOCAL_BYTES + strlen(name) + (sizes_need_64(m) ? EXTRA_HEAD_BYTES + 16 : 0);
}

static record local_header(const member *m, const char *name) {
  record r = {.length = 0};
  uint64_t extra = sizes_need_64(m) ? 16 : 0;
  put(&r, 0x04034b50, 4);
  put_common(&r, m, true, extra);
  put(&r, strlen(name), 2);
  put(&r, extra ? extra + EXTRA_HEAD_BYTES : 0, 2);
  memcpy(r.bytes + r.length, name, strlen(name));
  r.length += strlen(name);
  if (extra) {
    put(&r, 1, 2); /* the zip64 field */
    put(&r, extra, 2);
    put(&r, m->bytes, 8);
    put(&r, m->zip_bytes, 8);
  }
  return r;
}

static record central_header(const member *m, const char *name) {
  record r = {.length = 0};
  const uint64_t wide[3] = {m->bytes, m->zip_bytes, m->header_at};
  uint64_t extra = 0;
  for (int i = 0; i < 3; i++)
    extra += wide[i] >= FULL ? 8 : 0;
  put(&r, 0x02014b50, 4);
  put(&r, VERSION_64, 2); /* made by */
  put_common(&r, m, false, extra);
  put(&r, strlen(name), 2);
  put(&r, extra ? extra + EXTRA_HEAD_BYTES : 0, 2);
  put(&r, 0, 8); /* comment length, disk, internal attributes, half of the external ones */
  put(&r, 0, 2); /* the other half */
  put(&r, clip(m->header_at), 4);
  memcpy(r.bytes + r.length, name, strlen(name));
  r.length += strlen(name);
  if (extra) {
    put(&r, 1, 2);
    put(&r, extra, 2);
    for (int i = 0; i < 3; i++)
      if (wide[i] >= FULL)
        put(&r, wide[i], 8);
  }
  return r;
}

/* The end of the directory; two records before it where its place needs 64 bits. */
static record end_records(uint64_t directory_at, uint64_t directory_bytes) {
  record r = {.length = 0};
  if (directory_at >= FULL) {
    put(&r, 0x06064b50, 4);
    put(&r, END64_BYTES - 12, 8);
    put(&r, VERSION_64, 2);
    put(&r, VERSION_64, 2);
    put(&r, 0, 8); /* this disk, the disk of the directory */
    put(&r, N_MEMBERS, 8);
    put(&r, N_MEMBERS, 8);
    put(&r, directory_bytes, 8);
    put(&r, directory_at, 8);
    put(&r, 0x07064b50, 4);
    put(&r, 0, 4);
    put(&r, directory_at + directory_bytes, 8);
    put(&r, 1, 4);
  }
  put(&r, 0x06054b50, 4);
  put(&r, 0, 4); /* disks */
  put(&r, N_MEMBERS, 2);
  put(&r, N_MEMBERS, 2);
  put(&r, directory_bytes, 4);
  put(&r, clip(directory_at), 4);
  put(&r, 0, 2); /* no comment */
  return r;
}

static kith_status write_record(table_npz *self, uint64_t at, const record *r) {
  return kith_output_write_at(self->file.output, at, r->bytes, r->length);
}

static kith_status write_headers(table_npz *self) {
  uint64_t at = self->directory_at;
  for (int i = 0; i < N_MEMBERS; i++) {
    record local = local_header(&self->members[i], NAMES[i]),
           central = central_header(&self->members[i], NAMES[i]);
    kith_status status = write_record(self, self->members[i].header_at, &local);
    if (!status)
      status = write_record(self, at, &central);
    if (status)
      return status;
    at += central.length;
  }
  record end = end_records(self->directory_at, at - self->directory_at);
  return write_record(self, at, &end);
}

/* ---- the sink ---- */

static void describe_members(table_npz *self, const kith_shape *shape) {
  bool wide_ids = !kith_ids_fit_int32(shape);
  self->wide_indices = wide_ids;
  self->wide_indptr = wide_ids || shape->n_pairs > INT32_MAX;
  uint64_t n_offsets = shape->n_rows + 1, pointer = self->wide_indptr ? 8 : 4, id = wide_ids ? 8 : 4;
  member *m = self->members;
  m[M_FORMAT] = (member){.type = {"|S3", 0, {0}}, .array_bytes = 3};
  m[M_SHAPE] = (member){.type = {"<i8", 1, {2}}, .array_bytes = 16};
  m[M_INDPTR] = (member){.type = {self->wide_indptr ? "<i8" : "<i4", 1, {n_offsets}}};
  m[M_INDPTR].array_bytes = pointer * n_offsets;
  m[M_INDICES] = (member){.type = {wide_ids ? "<i8" : "<i4", 1, {shape->n_pairs}}};
  m[M_INDICES].array_bytes = id * shape->n_pairs;
  m[M_DATA] = (member){.type = {shape->distances ? "<f8" : "<i4", 1, {shape->n_pairs}}};
  m[M_DATA].array_bytes = (shape->distances ? sizeof(double) : sizeof(int32_t)) * shape->n_pairs;
  m[M_DATA].deflated = !shape->distances;
}

static void lay_out(table_npz *self) {
  uint64_t at = 0;
  for (int i = 0; i < N_MEMBERS; i++) {
    member *m = &self->members[i];
    m->bytes = KITH_NPY_HEADER_BYTES + m->array_bytes;
    m->zip_bytes = m->deflated ? deflated_bytes(m->array_bytes) : m->bytes;
    m->header_at = at;
    m->data_at = at + local_bytes(m, NAMES[i]);
    at = m->data_at + m->zip_bytes;
  }
  self->directory_at = at;
}

/* Opens the appender of a member, with its npy header in it unless that is to be deflated later. */
static kith_status open_member(table_npz *self, int which, kith_appender *appender) {
  const member *m = &self->members[which];
  kith_status status = kith_file_sink_region(&self->file, appender, m->data_at, true);
  if (status || m->deflated)
    return status;
  unsigned char header[KITH_NPY_HEADER_BYTES];
  kith_npy_header(header, &m->type);
  return kith_appender_append(appender, header, sizeof header);
}

static kith_status write_small_member(table_npz *self, int which, const void *array) {
  member *m = &self->members[which];
  unsigned char content[KITH_NPY_HEADER_BYTES + 16];
  kith_npy_header(content, &m->type);
  memcpy(content + KITH_NPY_HEADER_BYTES, array, m->array_bytes);
  m->crc = (uint32_t)crc32_z(0, content, m->bytes);
  return kith_output_write_at(self->file.output, m->data_at, content, m->bytes);
}

static kith_status table_begin(kith_sink *sink, const kith_shape *shape) {
  table_npz *self = (table_npz *)sink;
  describe_members(self, shape);
  lay_out(self);
  kith_status status = kith_file_sink_begin(&self->file, shape, KITH_ANYWHERE, self->directory_at);
  const uint64_t dims[2] = {shape->n_rows, shape->n_cols}, first_offset = 0;
  if (status || (status = write_small_member(self, M_FORMAT, "csr")) ||
      (status = write_small_member(self, M_SHAPE, dims)) ||
      (status = open_member(self, M_INDPTR, &self->indptr)) ||
      (status = open_member(self, M_INDICES, &self->indices)) ||
      (status = open_member(self, M_DATA, &self->data)))
    return status;
  return kith_appender_append(&self->indptr, &first_offset, self->wide_indptr ? 8 : 4);
}

static kith_status append_offsets(table_npz *self, const kith_batch *batch, uint64_t before) {
  kith_appender *appender = &self->indptr;
  size_t size = self->wide_indptr ? 8 : 4;
  kith_status status = KITH_OK;
  for (uint64_t r = 1; !status && r <= batch->n_rows; r++) {
    uint64_t offset = before + batch->offsets[r];
    if ((status = kith_appender_reserve(appender, size)))
      break;
    memcpy(kith_appender_end(appender), &offset, size); /* little-endian: the lower half comes first */
    appender->filled += size;
  }
  return status;
}

static kith_status append_wide_ids(kith_appender *appender, const uint32_t *ids, uint64_t n) {
  while (n > 0) {
    kith_status status = kith_appender_reserve(appender, sizeof(uint64_t));
    if (status)
      return status;
    uint64_t room = (KITH_APPENDER_BYTES - appender->filled) / sizeof(uint64_t), count = n < room ? n : room;
    uint64_t *to = (uint64_t *)(void *)kith_appender_end(appender);
    for (uint64_t k = 0; k < count; k++)
      to[k] = ids[k];
    appender->filled += count * sizeof *to;
    ids += count;
    n -= count;
  }
  return KITH_OK;
}

static kith_status table_take(kith_sink *sink, const kith_batch *batch) {
  table_npz *self = (table_npz *)sink;
  uint64_t before = self->file.pairs, pairs = batch->offsets[batch->n_rows];
  kith_status status = kith_file_sink_count(&self->file, batch);
  if (!status)
    status = append_offsets(self, batch, before);
  if (!status && self->wide_indices)
    status = append_wide_ids(&self->indices, batch->neighbors, pairs);
  else if (!status)
    status = kith_appender_append(&self->indices, batch->neighbors, pairs * sizeof *batch->neighbors);
  if (!status && self->file.shape.distances)
    status = kith_appender_append(&self->data, batch->distances, pairs * sizeof *batch->distances);
  return status;
}

static kith_status table_finish(kith_sink *sink) {
  table_npz *self = (table_npz *)sink;
  member *m = self->members;
  kith_status status = KITH_OK;
  if (m[M_DATA].deflated)
    status = write_ones(&self->data, &m[M_DATA]);
  if (status || (status = kith_appender_flush(&self->indptr)) ||
      (status = kith_appender_flush(&self->indices)) || (status = kith_appender_flush(&self->data)))
    return status;
  m[M_INDPTR].crc = self->indptr.crc;
  m[M_INDICES].crc = self->indices.crc;
  if (!m[M_DATA].deflated)
    m[M_DATA].crc = self->data.crc;
  status = write_headers(self);
  return status ? status : kith_file_sink_commit(&self->file);
}

static void table_destroy(kith_sink *sink) {
  table_npz *self = (table_npz *)sink;
  kith_appender_close(&self->indptr);
  kith_appender_close(&self->indices);
  kith_appender_close(&self->data);
  kith_file_sink_destroy(&self->file);
}

kith_status kith_sink_table_npz(kith_context *ctx, const char *path, kith_sink **out) {
  static const kith_sink CALLS = {
      .begin = table_begin, .take = table_take, .finish = table_finish, .destroy = table_destroy};
  return kith_file_sink_create(ctx, path, &CALLS, sizeof(table_npz), out);
}
