// Packed parameters of the hash families, as plain data that every clone of the hot loops reads.
//
// Rows come in panels of `panel_rows` (a clone's own number); the last panel is padded with zeros. An array described
// as [panel][i][lane] therefore holds `panels * terms * panel_rows` elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hushsum {

// Strongly universal vector multiply-shift hashing of `words` 32-bit words into [0, width):
//   u = (sum_i multiplier_i * word_i + addend) mod 2^64,  h = u >> 32,  cell = (h * width) >> 32.
// Words that follow each other would differ by a multiple of the multiplier and now and then fall into one cell all
// together, so `scattered` words go through a fixed bijection first, which keeps the hash pairwise independent.
// 64-bit sums fill two vectors where 32-bit words fill one, so a panel holds, for every `lanes` rows, those of the even
// lanes and then those of the odd ones. The structured family, whose lanes are records, keeps [row][word] and [row].
struct FoldPlan {
  const std::uint64_t* multipliers;  // [panel][word][vector][parity][lane / 2]
  const std::uint64_t* addends;      // [panel][vector][parity][lane / 2]
  std::size_t words;
  std::uint32_t width;
  bool fold;  // false: the single word is the cell
  bool scattered;
};

enum class Words { floors, signs };

struct ProjectionPlan {
  const float* weights;  // [panel][i][k][lane]
  const float* offsets;  // [panel][i][lane]
  std::size_t power;
  std::size_t dim;
};

// Features are rounded multiples of wave_amplitude, and so, with at most 0.51 lost in either part, no longer than
// wave_length.
constexpr double wave_amplitude = 1023.0;
constexpr std::int32_t wave_length = 1024;

struct DensePlan : ProjectionPlan {
  FoldPlan fold;
  Words words;
};

struct StructuredPlan {
  FoldPlan fold;         // one "panel" is one block of rows
  const float* signs;    // [block][3][size], each +1 or -1
  const float* offsets;  // [block][row][i]
  float scale;
  std::size_t size;  // of the Hadamard matrix
  std::size_t dim;
  std::size_t power;
  std::size_t block_rows;
  Words words;
};

struct MinPlan {
  FoldPlan fold;                // the last word marks the empty set
  const std::uint32_t* mixers;  // [panel][i][lane]
  const std::uint32_t* shifts;  // [panel][i][lane]
  std::size_t power;
};

struct CodePlan {
  FoldPlan fold;
  const std::int32_t* columns;  // [panel][i][lane]
  std::size_t power;
  std::size_t dim;
};

// Sums of a query's table values, shifted by the value in the first row so that no digits cancel: the first value is
// within sqrt(rows) standard deviations of the mean, which bounds the loss to a factor of `rows` in the last place.
struct Moments {
  double origin;
  double block_sum;   // of the block under way
  double sum[8];      // of the shifted values; rows 8 apart share a part
  double squares[8];  // of block means, weighted with the size of the block
};

struct Kernels {
  std::size_t lanes;
  std::size_t panel_rows;
  // Fill cells[record * stride + (panel - first_panel) * panel_rows + lane]; scratch as *_scratch says, in bytes.
  void (*dense_cells)(const DensePlan&, const float* records, std::size_t count, std::size_t first_panel,
                      std::size_t panels, std::uint32_t* cells, std::size_t stride, void* scratch);
  std::size_t (*dense_scratch)(const DensePlan&);
  // Hashes and counts at once, for a single floor per row; counters has a row for every lane, padding included.
  void (*dense_count)(const DensePlan&, const float* records, std::size_t count, std::size_t panel,
                      std::uint16_t* counters, void* scratch);
  // Hashes and adds the table's counters to one sum per record, likewise; the table has every row of the panel.
  void (*dense_total32)(const DensePlan&, const float* records, std::size_t count, std::size_t panel,
                        const std::int32_t* table, std::int64_t* sums, void* scratch);
  void (*dense_total64)(const DensePlan&, const float* records, std::size_t count, std::size_t panel,
                        const std::int64_t* table, std::int64_t* sums, void* scratch);
  void (*structured_cells)(const StructuredPlan&, const float* records, std::size_t count, std::size_t block,
                           std::uint32_t* cells, std::size_t stride, void* scratch);
  std::size_t (*structured_scratch)(const StructuredPlan&);
  void (*min_cells)(const MinPlan&, const std::uint32_t* mixed, const std::int64_t* starts, std::size_t count,
                    std::size_t first_panel, std::size_t panels, std::uint32_t* cells, std::size_t stride,
                    void* scratch);
  std::size_t (*min_scratch)(const MinPlan&);
  void (*mix_values)(const std::int64_t* values, std::size_t count, std::uint64_t salt, std::uint32_t* mixed);
  void (*code_cells)(const CodePlan&, const std::int32_t* records, std::size_t count, std::size_t first_panel,
                     std::size_t panels, std::uint32_t* cells, std::size_t stride, void* scratch);
  std::size_t (*code_scratch)(const CodePlan&);

  // Counters of `rows` rows of `width` cells each, contiguous.
  void (*add_narrow)(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                     std::size_t width, std::uint16_t* counters);
  void (*add_wide)(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                   std::size_t width, std::int64_t step, std::int64_t* counters);
  void (*add_row)(const std::uint32_t* cells, std::size_t count, std::int64_t step, std::uint8_t* narrow,
                  std::int64_t* counters);
  void (*flush_narrow)(std::uint16_t* narrow, std::size_t count, std::int64_t step, std::int64_t* counters);
  void (*flush_row)(std::uint8_t* narrow, std::size_t count, std::int64_t step, std::int64_t* counters);
  void (*transpose_cells)(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                          std::uint32_t* by_row, std::size_t row_stride);
  void (*gather32)(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row,
                   std::size_t rows, std::size_t width, const std::int32_t* table, std::size_t block, Moments* moments);
  void (*gather64)(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row,
                   std::size_t rows, std::size_t width, const std::int64_t* table, std::size_t block, Moments* moments);
  // Add the table's counters at the cells to one sum per record, which starts at 0 with row 0.
  void (*total32)(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row,
                  std::size_t rows, std::size_t width, const std::int32_t* table, std::int64_t* sums);
  void (*total64)(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row,
                  std::size_t rows, std::size_t width, const std::int64_t* table, std::int64_t* sums);
  // Adds the rounded cosines and sines of a panel's projections, in turns, over at most 2^20 records to
  // sums[2][panel_rows], cosines first.
  void (*add_waves)(const ProjectionPlan&, const float* records, std::size_t count, std::size_t panel,
                    std::int32_t* sums);
  // waves[record * stride + 2 * lane] is the cosine of a record's projection in turns, the next its sine; neither is
  // rounded to an integer.
  void (*write_waves)(const ProjectionPlan&, const float* records, std::size_t count, std::size_t panel, float* waves,
                      std::size_t stride);
  // Adds the sum over some panels of coefficients[panel][0][lane] * cosine + coefficients[panel][1][lane] * sine to
  // answers[record]; in single precision within the call.
  void (*read_waves)(const ProjectionPlan&, const float* records, std::size_t count, std::size_t panel,
                     std::size_t panels, const float* coefficients, double* answers);
  bool (*all_finite)(const float* values, std::size_t count);
};

const Kernels& chosen_kernels();

}  // namespace hushsum
