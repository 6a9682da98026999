/* The table of commands: see commands.h. */
#include "commands.h"

#include "errors.h"
#include "values.h"

#include <string.h>

const char PROGRAM_SUMMARY[] = "exactly which points are near which, at the speed of the hardware";

const command_example FIRST_STEPS[] = {
    {"kith gen expo --n 2M --dim 2 -o expo2d.npy", "makes two million points"},
    {"kith info expo2d.npy", "shows what is in the file"},
    {"kith plan join expo2d.npy --eps 0.0005", "shows what a join would do"},
    {"kith join expo2d.npy --eps 0.0005", "counts the pairs"},
    {"kith join expo2d.npy --eps 0.0005 --what neighbors -o out.npz", "writes the neighbours of every point"},
    {NULL, NULL},
};

const help_variable ENVIRONMENT[] = {
    {"KITH_ISA", "the instruction set: scalar, avx2 or avx512 (default: the best)"},
    {NULL, NULL},
};

/* The texts are laid out as they are printed. */
/* clang-format off */
const command_entry COMMANDS[] = {
    {COMMAND_JOIN,
     "join",
     {"join A --eps E [options]", "join A B --eps E [options]", NULL},
     "find the pairs of points that lie within a distance of each other",
     "Joins the points of file A with each other, or with those of file B.\n"
     "Distances are Euclidean unless --metric says otherwise, in double\n"
     "precision; a pair at exactly eps belongs to the result. One set gives\n"
     "both (i, j) and (j, i), and no (i, i). Ids are row numbers from 0.\n"
     "Files: .npy, .fbin, .csv .tsv .txt (with or without a header line), -\n"
     "for text on standard input, HDF5 (file.h5:/path), FITS tables\n"
     "(file.fits[1]), frames (a.gro[3], a.xyz[-1]).\n"
     "An output appears under its name only when it is complete.",
     {{"kith join a.npy --eps 0.01", "counts the pairs"},
      {"kith join a.npy --eps 0.01 --what degrees", "shows how many neighbours the points have"},
      {"kith join a.npy --eps 0.01 --what neighbors -o out.npz",
       "writes the neighbours of every point, for scipy.sparse.load_npz"},
      {"kith join a.npy b.npy --eps 0.1 --what pairs --distances -o pairs.npy",
       "writes (i, j, distance) for i of a.npy and j of b.npy"},
      {"kith join stars.csv --columns ra,dec --eps 1 --what pairs --half", "prints lines i,j with i < j"},
      {"kith join towns.csv --columns lon,lat --metric haversine --radius 6371 --eps 5",
       "counts the pairs of places within 5 km"},
      {"kith join water.gro --box file --eps 0.35", "counts the pairs within 0.35 in a periodic box"},
      {"kith join stars.csv --columns x,y --eps-column r", "within the radius that each row gives"},
      {"kith join big.npy --eps 0.01 --what pairs -o out.npy --checkpoint DIR",
       "killed or interrupted, goes on where it was when it is run again"},
      {"kith join big.npy --eps 0.01 --threads 8 --memory 4G --json", "reports to a program"},
      {NULL, NULL}},
     command_join},
    {COMMAND_PLAN,
     "plan",
     {"plan join A --eps E [options]", "plan join A B --eps E [options]", NULL},
     "show what a join would do: its index, result size, memory and time",
     "Builds the index and runs a sample of the points, then shows the grid,\n"
     "the pairs to test, the size of the result with its standard error,\n"
     "memory, time, and why. Takes the options of join; nothing is written.\n"
     "A result that would not fit the memory is planned all the same, and says so.",
     {{"kith plan join a.npy --eps 0.01", NULL},
      {"kith plan join a.npy --eps 0.01 --what neighbors", "would the table fit in memory?"},
      {"kith plan join a.npy --eps 0.01 --what neighbors -o out.npz --json", "the same, written to a file instead"},
      {NULL, NULL}},
     command_plan},
    {COMMAND_GEN,
     "gen",
     {"gen {unif|expo|gauss|lattice} --n N -o FILE [options]", NULL},
     "make a set of points, the same bytes on every machine",
     "unif     uniform in [0, 1)\n"
     "expo     exponential with rate lambda, values of 1 and more drawn again\n"
     "gauss    normal with mean 0 and standard deviation 1\n"
     "lattice  the first n points of a regular grid in [0, 1): many exact ties",
     {{"kith gen expo --n 2000000 --dim 2 --seed 1 --dtype f4 -o expo2d.npy", NULL},
      {"kith gen unif --n 1e6 --dim 3 --dtype f8 -o cube.npy", NULL},
      {"kith gen lattice --n 10k --dim 2 -o grid.csv", NULL},
      {NULL, NULL}},
     command_gen},
    {COMMAND_INFO,
     "info",
     {"info FILE [options]", NULL},
     "describe a file of points: size, type, range of every column",
     "Rows with NaN or infinity are counted, and left out of the statistics.",
     {{"kith info a.npy", NULL},
      {"kith info stars.csv --columns ra,dec", NULL},
      {"kith info run.h5:/snapshot/positions", NULL},
      {"kith info 'stars.fits[1]' --columns ra,dec", NULL},
      {"kith info 'traj.gro[-1]'", "the last frame, and its box"},
      {"cat stars.csv | kith info - --json", NULL},
      {NULL, NULL}},
     command_info},
    {COMMAND_DEVICES,
     "devices",
     {"devices [--calibrate [--threads N]] [--json]", NULL},
     "list the engines of this machine, and why one cannot be used",
     "An engine is what runs a join; 'kith join --engine NAME' chooses one.",
     {{"kith devices", NULL}, {"kith devices --calibrate", "measure them, for 'kith plan' and --engine hybrid"},
      {NULL, NULL}},
     command_devices},
    {.name = NULL},
};
/* clang-format on */

const command_entry *command_find(const char *name) {
  for (const command_entry *command = COMMANDS; command->name; command++)
    if (strcmp(name, command->name) == 0)
      return command;
  return NULL;
}

int command_unknown(const char *name) {
  const char *best = NULL;
  for (const command_entry *command = COMMANDS; command->name; command++)
    if (value_similar(name, command->name) &&
        (!best || value_distance(name, command->name) < value_distance(name, best)))
      best = command->name;
  if (best)
    return cli_usage(NULL, "unknown command '%s' (did you mean '%s'?)", name, best);
  return cli_usage(NULL, "unknown command '%s'", name);
}
