/* A periodic box on a GPU: points are moved into the brick of the lattice. Where the grid wraps around it, that
 * is all (join_tile.cuh). Else, as where the box has angles, candidates near its faces have images beyond them.
 *
 * The candidates as they are and their images are met in two passes. Images have an index of their own over the
 * same grid. They lie outside of it, in the cells that are nearest: what is within reach of a point in the
 * brick still is, since clamping never moves cells apart. Only tiles near the faces, the border, take part in
 * the second pass. Counting a set against itself needs only one of a shift and its opposite. Where there is no
 * room for all images, the second pass is made in parts.
 *
 * Staged coordinates are relative to the first query of a tile, for float32 input too, and those of images are
 * doubles until then. For the band,
 * coordinates may be off by some 2^-53 of the lengths that moving deals with (the side of the brick, the
 * shift), and the definition rounds (a - b) + shift likewise; 2^-26 of these lengths more than pays for that.
 * So does what the grid's reach is wider by (widen_reach). */
#ifndef KITH_ENGINE_CUDA_BOX_CUH
#define KITH_ENGINE_CUDA_BOX_CUH

#include "engine/cuda/space.cuh"

namespace kith_cuda {

/* How shifts are numbered: by their turns, of which there are few along each axis. */
struct shift_numbers {
  int32_t first[KITH_MAX_AXES];
  uint32_t stride[KITH_MAX_AXES];
};

/* Where an image stands among all: by its cell, then by where its source is in the list of sources. So they are
 * met in this order, whatever the parts. */
struct image_place {
  uint64_t key = 0;
  uint32_t source = 0;
  __host__ __device__ bool operator<(const image_place &other) const {
    return key != other.key ? key < other.key : source < other.source;
  }
};

/* The images from `first` up to `end`. */
struct image_part {
  image_place first, end;
  cell_index index; /* without coordinates: */
  buffer<double> coords;
  buffer<image> list; /* where they come from */
};

/* The images of all candidates of a join, a part at a time. */
class box_images {
public:
  box_images(kith_cuda_session &session, const kith_cuda_spec &spec, const kith_grid &grid,
             const cell_index &candidates, bool is_f64);
  /* Behind the last image. */
  image_place end() const { return {UINT64_C(1) << grid.key_bits, 0}; }
  /* The images from `first` on, as many as fit; positive: of a shift and its opposite, only in one. Until the
   * next call. */
  const image_part &get(image_place first, bool positive);
  /* The last part is kept until it is forgotten. */
  bool has_part() const { return image_place{} < part.end; }
  void forget() { part = image_part{}; }
  /* Makes the images of a part the candidates of a pass. */
  void set_arguments(const image_part &part, struct join_args &args) const;

private:
  void make_shifts();
  void find_sources();
  uint64_t count(const struct image_question &question, buffer<uint64_t> &begins);
  uint64_t most_images() const;
  bool try_part(image_place first, image_place end, bool positive);
  image_place halve(image_place first, image_place end) const;
  template <typename K> void fill_part(const struct image_question &question, const uint64_t *begins);

  kith_cuda_session &session;
  const kith_cuda_spec &spec;
  const kith_grid &grid;
  const cell_index &candidates;
  view points; /* the candidates' coordinates */
  struct {
    uint32_t n = 0;
    buffer<uint32_t> positions;
  } sources; /* candidates near the faces of the brick */
  shift_numbers numbers{};
  buffer<kith_shift> shifts;
  double rounding = 0;
  image_part part;
  bool positive = false;
};

/* Moves points into the brick: into a copy of doubles in `room`, unless all lie there already. Refuses points
 * whose place is lost, or makes them invalid rows if those are skipped. */
view wrap_points(kith_cuda_session &session, const kith_cuda_spec &spec, const view &points, const char *name,
                 buffer<char> &room);

/* Those of the tiles of an index that may meet images, in any order. */
tile_list find_border_tiles(kith_cuda_session &session, const tiles &all, const cell_index &index, bool is_f64,
                            const kith_cuda_spec &spec);

/* How far apart points may be along an axis that belong together in some image, rounding included. */
double widen_reach(const kith_lattice &lattice, double reach);

} // namespace kith_cuda
#endif
