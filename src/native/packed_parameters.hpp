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
struct FoldParameters {
  const std::uint64_t* multipliers;  // [panel][word][vector][parity][lane / 2]
  const std::uint64_t* addends;      // [panel][vector][parity][lane / 2]
  std::size_t words;
  std::uint32_t width;
  bool fold;  // false: the single word is the cell
  bool scattered;
};

enum class Words { floors, signs };

struct ProjectionParameters {
  const float* weights;  // [panel][i][k][lane]
  const float* offsets;  // [panel][i][lane]
  std::size_t power;
  std::size_t dim;
};

// Features are rounded multiples of wave_amplitude, and so, with at most 0.51 lost in either part, no longer than
// wave_length.
constexpr double wave_amplitude = 1023.0;
constexpr std::int32_t wave_length = 1024;

struct DenseParameters : ProjectionParameters {
  FoldParameters fold;
  Words words;
};

struct StructuredParameters {
  FoldParameters fold;   // one "panel" is one block of rows
  const float* signs;    // [block][3][size], each +1 or -1
  const float* offsets;  // [block][row][i]
  float scale;
  std::size_t size;  // of the Hadamard matrix
  std::size_t dim;
  std::size_t power;
  std::size_t block_rows;
  Words words;
};

// Structured projections for waves: output r of block b, times scales[b][r], is a phase in turns.
struct StructuredWaveParameters {
  const float* signs;   // [block][3][size], each +1 or -1
  const float* scales;  // [block][size], zeros beyond the last row
  std::size_t size;     // of the Hadamard matrix
  std::size_t dim;
};

struct MinParameters {
  FoldParameters fold;          // the last word marks the empty set
  const std::uint32_t* mixers;  // [panel][i][lane]
  const std::uint32_t* shifts;  // [panel][i][lane]
  std::size_t power;
};

struct CodeParameters {
  FoldParameters fold;
  const std::int32_t* columns;  // [panel][i][lane]
  std::size_t power;
  std::size_t dim;
};

}  // namespace hushsum
