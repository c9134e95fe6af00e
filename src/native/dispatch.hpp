// The hot loops as one table of functions. Every simd_*.cpp is compiled once per instruction set ("clone"), each clone
// has one table, and simd_loops() picks the one for this processor. HUSHSUM_FORCE_CLONE in the environment (baseline,
// v3, v4) overrides the choice, for tests that compare the clones bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "noise.hpp"
#include "packed_parameters.hpp"

namespace hushsum {

// Sums of a query's table values, shifted by the value in the first row so that no digits cancel: the first value is
// within sqrt(rows) standard deviations of the mean, which bounds the loss to a factor of `rows` in the last place.
struct Moments {
  double origin;
  double block_sum;   // of the block under way
  double sum[8];      // of the shifted values; rows 8 apart share a part
  double squares[8];  // of block means, weighted with the size of the block
};

// Sums over rows of a record's products: all of them, those of the block of rows under way, and the squares of earlier
// blocks' sums.
struct BlockSums {
  double sum, block_sum, squares;
};

struct SimdLoops {
  std::size_t lanes;
  std::size_t panel_rows;
  // Fill cells[record * stride + (panel - first_panel) * panel_rows + lane]; scratch as *_scratch says, in bytes.
  void (*dense_cells)(const DenseParameters&, const float* records, std::size_t count, std::size_t first_panel,
                      std::size_t panels, std::uint32_t* cells, std::size_t stride, void* scratch);
  std::size_t (*dense_scratch)(const DenseParameters&);
  // Hashes and counts at once, for a single floor per row; counters has a row for every lane, padding included.
  void (*dense_count)(const DenseParameters&, const float* records, std::size_t count, std::size_t panel,
                      std::uint16_t* counters, void* scratch);
  // Hashes and adds the table's counters to one sum per record, likewise; the table has every row of the panel.
  void (*dense_total32)(const DenseParameters&, const float* records, std::size_t count, std::size_t panel,
                        const std::int32_t* table, std::int64_t* sums, void* scratch);
  void (*dense_total64)(const DenseParameters&, const float* records, std::size_t count, std::size_t panel,
                        const std::int64_t* table, std::int64_t* sums, void* scratch);
  void (*structured_cells)(const StructuredParameters&, const float* records, std::size_t count, std::size_t block,
                           std::uint32_t* cells, std::size_t stride, void* scratch);
  std::size_t (*structured_scratch)(const StructuredParameters&);
  void (*min_cells)(const MinParameters&, const std::uint32_t* mixed, const std::int64_t* starts, std::size_t count,
                    std::size_t first_panel, std::size_t panels, std::uint32_t* cells, std::size_t stride,
                    void* scratch);
  std::size_t (*min_scratch)(const MinParameters&);
  void (*mix_values)(const std::int64_t* values, std::size_t count, std::uint64_t salt, std::uint32_t* mixed);
  void (*code_cells)(const CodeParameters&, const std::int32_t* records, std::size_t count, std::size_t first_panel,
                     std::size_t panels, std::uint32_t* cells, std::size_t stride, void* scratch);
  std::size_t (*code_scratch)(const CodeParameters&);

  // Counters of `rows` rows of `width` cells each, contiguous.
  void (*add_narrow)(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                     std::size_t width, std::uint16_t* counters);
  void (*add_wide)(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                   std::size_t width, std::int64_t step, std::int64_t* counters);
  void (*add_row)(const std::uint32_t* cells, std::size_t count, std::int64_t step, std::uint8_t* narrow,
                  std::int64_t* counters);
  // Adds step (+1 or -1) to one byte per cell, and returns how many bytes wrapped around; carried[i] are their cells.
  std::size_t (*add_bytes)(const std::uint32_t* cells, std::size_t count, std::int64_t step, std::uint8_t* low,
                           std::uint32_t* carried);
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
  void (*add_waves)(const ProjectionParameters&, const float* records, std::size_t count, std::size_t panel,
                    std::int32_t* sums);
  // waves[record * stride + 2 * lane] is the cosine of a record's projection in turns, the next its sine; neither is
  // rounded to an integer.
  void (*write_waves)(const ProjectionParameters&, const float* records, std::size_t count, std::size_t panel,
                      float* waves, std::size_t stride);
  // Adds the sum over some panels of coefficients[panel][0][lane] * cosine + coefficients[panel][1][lane] * sine to
  // answers[record]; in single precision within the call.
  void (*read_waves)(const ProjectionParameters&, const float* records, std::size_t count, std::size_t panel,
                     std::size_t panels, const float* coefficients, double* answers);
  // The same products, summed by blocks of `block` rows: the first panel's row 0 is row panel * panel_rows, and rows
  // from `rows` on are padding.
  void (*spread_waves)(const ProjectionParameters&, const float* records, std::size_t count, std::size_t panel,
                       std::size_t panels, std::size_t rows, std::size_t block, const float* coefficients,
                       BlockSums* sums);
  // The same three for one block of structured projections: sums[2][size] and coefficients[2][size], cosines first.
  // `by_row` takes every row for a block; of a block that is not `whole`, the sum goes to block_sum.
  void (*add_structured_waves)(const StructuredWaveParameters&, const float* records, std::size_t count,
                               std::size_t block, std::int32_t* sums, void* scratch);
  void (*read_structured_waves)(const StructuredWaveParameters&, const float* records, std::size_t count,
                                std::size_t block, const float* coefficients, double* answers, void* scratch);
  void (*spread_structured_waves)(const StructuredWaveParameters&, const float* records, std::size_t count,
                                  std::size_t block, bool by_row, bool whole, const float* coefficients,
                                  BlockSums* sums, void* scratch);
  std::size_t (*structured_waves_scratch)(const StructuredWaveParameters&);
  bool (*all_finite)(const float* values, std::size_t count);

  // Word w of ChaCha20 block counter + b goes to out[16 w + b].
  void (*keystream_group)(const std::uint32_t* key, const Nonce& nonce, std::uint32_t counter, std::uint32_t* out);
  // Fill out[0..size), size <= chunk_draws; false if the resolver failed.
  bool (*laplace_chunk)(const StreamId& id, const LaplaceShape& shape, std::uint64_t chunk, std::int64_t* out,
                        std::uint32_t size, const Resolver& resolver);
  bool (*gaussian_chunk)(const StreamId& id, const GaussianShape& shape, std::uint64_t chunk, std::int64_t* out,
                         std::uint32_t size, const Resolver& resolver);
};

const SimdLoops& simd_loops();

// The name of the clone that simd_loops() picks: baseline, v3 or v4.
const char* clone_name();

}  // namespace hushsum
