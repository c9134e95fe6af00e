// Cells into counters, and counters into the moments of a query.
#include "lanes.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

// `Group` rows side by side: neighbouring increments hit different rows, so a popular cell does not wait for its own
// last store, and the counters of the group stay in the first-level cache.
template <std::size_t Group, class Counter>
HUSHSUM_INLINE void add_group(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t width,
                              Counter step, Counter* counters) {
  for (std::size_t j = 0; j < count; ++j, cells += stride) {
#pragma GCC unroll 8
    for (std::size_t l = 0; l < Group; ++l) counters[l * width + cells[l]] += step;
  }
}

template <class Counter>
HUSHSUM_INLINE void add_cells(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                              std::size_t width, Counter step, Counter* counters) {
  std::size_t l = 0;
  for (; l + 8 <= rows; l += 8) add_group<8>(cells + l, count, stride, width, step, counters + l * width);
  for (; l < rows; ++l) add_group<1>(cells + l, count, stride, width, step, counters + l * width);
}

template <class Counter>
void flush(Counter* __restrict narrow, std::size_t count, std::int64_t step, std::int64_t* __restrict counters) {
  for (std::size_t c = 0; c < count; ++c) {
    counters[c] += step * narrow[c];
    narrow[c] = 0;
  }
}

// Sixteen values at a time through eight partial sums: the same order of additions in every clone and batch.
HUSHSUM_INLINE void add_values(const double (&value)[16], Moments& moments) {
  double sum[8], squares[8];
  for (std::size_t l = 0; l < 8; ++l) {
    sum[l] = value[l] + value[l + 8];
    squares[l] = value[l] * value[l] + value[l + 8] * value[l + 8];
  }
  for (std::size_t half = 4; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) {
      sum[l] += sum[l + half];
      squares[l] += squares[l + half];
    }
  moments.sum += sum[0];
  moments.squares += squares[0];
}

template <class Value>
void gather(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row,
            std::size_t rows, std::size_t width, const Value* table, std::size_t block, Moments* moments) {
  for (std::size_t j = 0; j < count; ++j, cells += stride) {
    Moments& of = moments[j];
    if (first_row == 0) of = {static_cast<double>(table[cells[0]]), 0, 0, 0};
    if (block == 1) {
      for (std::size_t row = 0; row < rows; row += 16) {
        double value[16];
        if (rows - row >= 16) {
          for (std::size_t l = 0; l < 16; ++l)
            value[l] = static_cast<double>(table[(row + l) * width + cells[row + l]]) - of.origin;
        } else {
          for (std::size_t l = 0; l < 16; ++l)
            value[l] = row + l < rows ? static_cast<double>(table[(row + l) * width + cells[row + l]]) - of.origin : 0;
        }
        add_values(value, of);
      }
      continue;
    }
    for (std::size_t row = 0; row < rows; ++row) {
      of.block_sum += static_cast<double>(table[row * width + cells[row]]) - of.origin;
      if ((first_row + row + 1) % block == 0) {
        of.sum += of.block_sum;
        of.squares += of.block_sum * of.block_sum / static_cast<double>(block);
        of.block_sum = 0;
      }
    }
  }
}

void add_narrow(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                std::size_t width, std::uint16_t* counters) {
  add_cells<std::uint16_t>(cells, count, stride, rows, width, 1, counters);
}

void add_wide(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows, std::size_t width,
              std::int64_t step, std::int64_t* counters) {
  add_cells<std::int64_t>(cells, count, stride, rows, width, step, counters);
}

// One row of a table beyond the cache: bytes are counted in the cache, and a byte that wraps spills at once.
void add_row(const std::uint32_t* cells, std::size_t count, std::int64_t step, std::uint8_t* narrow,
             std::int64_t* counters) {
  for (std::size_t j = 0; j < count; ++j)
    if (++narrow[cells[j]] == 0) counters[cells[j]] += 256 * step;
}

void transpose_cells(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                     std::uint32_t* by_row, std::size_t row_stride) {
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t l = 0; l < rows; ++l) by_row[l * row_stride + j] = cells[j * stride + l];
}

// Infinities and NaNs are the floats whose exponent is all ones.
bool all_finite(const float* values, std::size_t count) {
  std::uint32_t bad = 0;
  for (std::size_t k = 0; k < count; ++k) {
    std::uint32_t bits;
    std::memcpy(&bits, values + k, sizeof bits);
    bad |= (bits & 0x7f800000u) == 0x7f800000u;
  }
  return bad == 0;
}

}  // namespace

const Kernels kernels = {
    panel_rows,
    dense_cells,
    dense_scratch,
    structured_cells,
    structured_scratch,
    min_cells,
    min_scratch,
    mix_values,
    code_cells,
    code_scratch,
    add_narrow,
    add_wide,
    add_row,
    flush<std::uint16_t>,
    flush<std::uint8_t>,
    transpose_cells,
    gather<std::int32_t>,
    gather<std::int64_t>,
    all_finite,
};

}  // namespace hushsum::HUSHSUM_CLONE
