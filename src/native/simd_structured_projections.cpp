// Structured projections: y = H S3 H S2 H S1 x with Hadamard matrices H and diagonal signs S, one triple per block.
//
// The last transform computes only the leading outputs that a block of rows uses.
#include "hadamard.hpp"
#include "lanes.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

// The widest butterflies for the first size / Radix outputs only, which need nothing but sums.
template <std::size_t Radix>
void signed_sums(Floats* y, const float* signs, std::size_t size) {
  const std::size_t step = size / Radix;
  for (std::size_t j = 0; j < step; ++j) {
    Floats a[Radix];
    HUSHSUM_UNROLL
    for (std::size_t t = 0; t < Radix; ++t) a[t] = y[j + t * step] * spread(signs[j + t * step]);
    HUSHSUM_UNROLL
    for (std::size_t half = Radix / 2; half > 0; half /= 2) HUSHSUM_UNROLL
    for (std::size_t t = 0; t < half; ++t) a[t] += a[t + half];
    y[j] = a[0];
  }
}

// The first `wanted` outputs of the transform of signed inputs, and perhaps more.
void transform_leading(Floats* y, const float* signs, std::size_t size, std::size_t wanted) {
  if (size / 8 >= wanted) {
    signed_sums<8>(y, signs, size);
    transform(y, size / 8, size / 8);
  } else if (size / 2 >= wanted) {
    signed_sums<2>(y, signs, size);
    transform(y, size / 2, size / 2);
  } else {
    transform_signed(y, signs, size);
  }
}

// Cells of one row for `lanes` records.
HUSHSUM_INLINE Uints fold_row(const FoldParameters& plan, std::size_t row, const Uints* words) {
  if (!plan.fold) return words[0];
  Longs even = spread(plan.addends[row]), odd = even;
  for (std::size_t i = 0; i < plan.words; ++i) {
    const Longs multiplier = spread(plan.multipliers[row * plan.words + i]);
    const Uints word = plan.scattered ? scattered(words[i]) : words[i];
    even += multiplier * even_lanes(word);
    odd += multiplier * odd_lanes(word);
  }
  return cells_of_sums(even, odd, plan.width);
}

}  // namespace

std::size_t structured_scratch(const StructuredParameters& plan) {
  return (plan.size + plan.block_rows + plan.fold.words) * sizeof(Floats);
}

void structured_cells(const StructuredParameters& plan, const float* records, std::size_t count, std::size_t block,
                      std::uint32_t* cells, std::size_t stride, void* scratch) {
  auto* y = static_cast<Floats*>(scratch);
  auto* found = reinterpret_cast<Uints*>(y + plan.size);  // [row] cells
  Uints* words = found + plan.block_rows;
  const float* signs = plan.signs + block * 3 * plan.size;
  const float* offsets = plan.offsets + block * plan.block_rows * plan.power;
  const Floats scale = spread(plan.scale);
  const std::size_t rows = plan.block_rows;
  for (std::size_t first = 0; first < count; first += lanes) {
    const std::size_t live = count - first < lanes ? count - first : lanes;
    load_records(plan.dim, plan.size, records + first * plan.dim, live, signs, y);
    transform(y, plan.size, plan.size);
    transform_signed(y, signs + plan.size, plan.size);
    transform_leading(y, signs + 2 * plan.size, plan.size, rows * plan.power);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < plan.power; ++i) {
        const std::size_t at = row * plan.power + i;
        const Floats z = fused(y[at], scale, spread(offsets[at]));
        if (plan.words == Words::floors) words[i] = floor_words(z);
        else words[i / 32] = (i % 32 == 0 ? Uints{} : words[i / 32]) | sign_bit(z, i % 32);
      }
      found[row] = fold_row(plan.fold, block * rows + row, words);
    }
    std::uint32_t* to = cells + first * stride;
    std::size_t row = 0;
    for (; live == lanes && row + lanes <= rows; row += lanes) {
      Uints square[lanes];
      HUSHSUM_UNROLL
      for (std::size_t l = 0; l < lanes; ++l) square[l] = found[row + l];
      transpose(square);
      HUSHSUM_UNROLL
      for (std::size_t l = 0; l < lanes; ++l) store(to + l * stride + row, square[l]);
    }
    for (; row < rows; ++row)
      for (std::size_t l = 0; l < live; ++l) to[l * stride + row] = found[row][l];
  }
}

}  // namespace hushsum::HUSHSUM_CLONE
