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
    HUSHSUM_UNROLL
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

// Eight rows at a time into eight partial sums: the same order of additions in every clone and batch.
template <class Value>
HUSHSUM_INLINE void add_values(const Value (&value)[8], Moments& to) {
  for (std::size_t l = 0; l < 8; ++l) {
    const double shifted = static_cast<double>(value[l]) - to.origin;
    to.sum[l] += shifted;
    to.squares[l] += shifted * shifted;
  }
}

template <class Value>
HUSHSUM_INLINE void gather_rows(const std::uint32_t* cells, std::size_t rows, std::size_t width, const Value* table,
                                Moments& to) {
  std::size_t row = 0;
  for (; row + 8 <= rows; row += 8, table += 8 * width) {
    Value value[8];
    HUSHSUM_UNROLL
    for (std::size_t l = 0; l < 8; ++l) {
      std::size_t cell = cells[row + l];
      asm("" : "+r"(cell));  // keeps plain loads: gather instructions are slower on many processors
      value[l] = table[l * width + cell];
    }
    add_values(value, to);
  }
  if (row == rows) return;
  Value value[8];
  for (std::size_t l = 0; l < 8; ++l)
    value[l] = row + l < rows ? table[l * width + cells[row + l]] : static_cast<Value>(to.origin);
  add_values(value, to);
}

template <class Value>
HUSHSUM_INLINE void gather_blocks(const std::uint32_t* cells, std::size_t first_row, std::size_t rows,
                                  std::size_t width, const Value* table, std::size_t block, Moments& to) {
  std::size_t left = block - first_row % block;
  for (std::size_t row = 0; row < rows; ++row) {
    to.block_sum += static_cast<double>(table[row * width + cells[row]]) - to.origin;
    if (--left > 0) continue;
    to.sum[0] += to.block_sum;
    to.squares[0] += to.block_sum * to.block_sum / static_cast<double>(block);
    to.block_sum = 0;
    left = block;
  }
}

template <class Value>
void gather(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row, std::size_t rows,
            std::size_t width, const Value* table, std::size_t block, Moments* moments) {
  for (std::size_t j = 0; j < count; ++j, cells += stride) {
    if (first_row == 0) moments[j] = {static_cast<double>(table[cells[0]]), 0, {}, {}};
    if (block == 1) gather_rows(cells, rows, width, table, moments[j]);
    else gather_blocks(cells, first_row, rows, width, table, block, moments[j]);
  }
}

// The sums alone, in integers, so that their order does not matter.
template <class Value>
void total(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row, std::size_t rows,
           std::size_t width, const Value* table, std::int64_t* sums) {
  for (std::size_t j = 0; j < count; ++j, cells += stride) {
    std::int64_t part[4] = {first_row == 0 ? 0 : sums[j], 0, 0, 0};
    const Value* from = table;
    std::size_t row = 0;
    for (; row + 4 <= rows; row += 4, from += 4 * width) {
      HUSHSUM_UNROLL
      for (std::size_t l = 0; l < 4; ++l) {
        std::size_t cell = cells[row + l];
        asm("" : "+r"(cell));  // plain loads, as above
        part[l] += from[l * width + cell];
      }
    }
    for (; row < rows; ++row, from += width) part[0] += from[cells[row]];
    sums[j] = part[0] + part[1] + part[2] + part[3];
  }
}

void add_narrow(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows, std::size_t width,
                std::uint16_t* counters) {
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

template <bool up>
HUSHSUM_INLINE std::size_t step_bytes(const std::uint32_t* cells, std::size_t count, std::uint8_t* low,
                                      std::uint32_t* carried) {
  std::size_t carries = 0;
  for (std::size_t j = 0; j < count; ++j) {
    std::uint8_t& byte = low[cells[j]];
    const bool wraps = up ? ++byte == 0 : byte-- == 0;
    if (wraps) carried[carries++] = cells[j];
  }
  return carries;
}

std::size_t add_bytes(const std::uint32_t* cells, std::size_t count, std::int64_t step, std::uint8_t* low,
                      std::uint32_t* carried) {
  return step > 0 ? step_bytes<true>(cells, count, low, carried) : step_bytes<false>(cells, count, low, carried);
}

void transpose_cells(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                     std::uint32_t* by_row, std::size_t row_stride) {
  const std::size_t whole_count = count / lanes * lanes, whole_rows = rows / lanes * lanes;
  for (std::size_t j = 0; j < whole_count; j += lanes)
    for (std::size_t l = 0; l < whole_rows; l += lanes) {
      Uints square[lanes];
      HUSHSUM_UNROLL
      for (std::size_t i = 0; i < lanes; ++i) square[i] = load<Uints>(cells + (j + i) * stride + l);
      transpose(square);
      HUSHSUM_UNROLL
      for (std::size_t i = 0; i < lanes; ++i) store(by_row + (l + i) * row_stride + j, square[i]);
    }
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t l = j < whole_count ? whole_rows : 0; l < rows; ++l)
      by_row[l * row_stride + j] = cells[j * stride + l];
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

const SimdLoops loops = {
    .lanes = lanes,
    .panel_rows = panel_rows,
    .dense_cells = dense_cells,
    .dense_scratch = dense_scratch,
    .dense_count = dense_count,
    .dense_total32 = dense_total<std::int32_t>,
    .dense_total64 = dense_total<std::int64_t>,
    .structured_cells = structured_cells,
    .structured_scratch = structured_scratch,
    .min_cells = min_cells,
    .min_scratch = min_scratch,
    .mix_values = mix_values,
    .code_cells = code_cells,
    .code_scratch = code_scratch,
    .add_narrow = add_narrow,
    .add_wide = add_wide,
    .add_row = add_row,
    .add_bytes = add_bytes,
    .flush_narrow = flush<std::uint16_t>,
    .flush_row = flush<std::uint8_t>,
    .transpose_cells = transpose_cells,
    .gather32 = gather<std::int32_t>,
    .gather64 = gather<std::int64_t>,
    .total32 = total<std::int32_t>,
    .total64 = total<std::int64_t>,
    .add_waves = add_waves,
    .write_waves = write_waves,
    .read_waves = read_waves,
    .spread_waves = spread_waves,
    .add_structured_waves = add_structured_waves,
    .read_structured_waves = read_structured_waves,
    .spread_structured_waves = spread_structured_waves,
    .structured_waves_scratch = structured_waves_scratch,
    .all_finite = all_finite,
    .keystream_group = keystream_group,
    .laplace_chunk = laplace_chunk,
    .gaussian_chunk = gaussian_chunk,
};

}  // namespace hushsum::HUSHSUM_CLONE
