// Structured projections: y = H S3 H S2 H S1 x with Hadamard matrices H and diagonal signs S, one triple per block.
//
// Lanes are records, so every butterfly is vertical and a record never meets another. Butterflies run from the widest
// distance to the narrowest in every clone, which fixes the tree of additions. The last transform computes only the
// leading outputs that a block of rows uses.
#include "lanes.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

// Radix-2, -4 and -8 passes do the same additions as single butterflies and touch memory less often.
template <std::size_t Radix>
HUSHSUM_INLINE void butterflies(Floats (&a)[Radix]) {
#pragma GCC unroll 8
  for (std::size_t half = Radix / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (std::size_t j = 0; j < Radix; ++j)
      if ((j & half) == 0) {
        const Floats sum = a[j] + a[j + half], difference = a[j] - a[j + half];
        a[j] = sum;
        a[j + half] = difference;
      }
}

template <std::size_t Radix>
void pass(Floats* y, std::size_t size, std::size_t span) {
  const std::size_t step = span / Radix;
  for (std::size_t start = 0; start < size; start += span)
    for (std::size_t j = start; j < start + step; ++j) {
      Floats a[Radix];
#pragma GCC unroll 8
      for (std::size_t t = 0; t < Radix; ++t) a[t] = y[j + t * step];
      butterflies<Radix>(a);
#pragma GCC unroll 8
      for (std::size_t t = 0; t < Radix; ++t) y[j + t * step] = a[t];
    }
}

void transform(Floats* y, std::size_t size) {
  std::size_t span = size;
  while (span >= 8) {
    pass<8>(y, size, span);
    span /= 8;
  }
  if (span == 4) pass<4>(y, size, span);
  if (span == 2) pass<2>(y, size, span);
}

void apply_signs(Floats* y, const float* signs, std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) y[k] *= spread(signs[k]);
}

void transform_leading(Floats* y, std::size_t size, std::size_t wanted) {
  while (size / 2 >= wanted) {
    size /= 2;
    for (std::size_t j = 0; j < size; ++j) y[j] += y[j + size];
  }
  transform(y, size);
}

// Cells of one row for `lanes` records.
HUSHSUM_INLINE Uints fold_row(const FoldPlan& plan, std::size_t row_in_pack, std::size_t pack_rows, const Uints* words) {
  if (!plan.fold) return words[0];
  const std::size_t pack = row_in_pack / pack_rows, lane = row_in_pack % pack_rows;
  std::uint64_t sums[lanes];
  std::uint32_t tops[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    sums[l] = plan.addends[row_in_pack];
    tops[l] = 0;
  }
  for (std::size_t i = 0; i < plan.words; ++i) {
    const std::uint32_t low = plan.low[(pack * plan.words + i) * pack_rows + lane];
    const std::uint32_t high = plan.high[(pack * plan.words + i) * pack_rows + lane];
    std::uint32_t word[lanes];
    store(word, words[i]);
    for (std::size_t l = 0; l < lanes; ++l) {
      sums[l] += std::uint64_t{low} * word[l];
      tops[l] += high * word[l];
    }
  }
  std::uint32_t cells[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    const std::uint32_t hash = static_cast<std::uint32_t>(sums[l] >> 32) + tops[l];
    cells[l] = static_cast<std::uint32_t>((hash * std::uint64_t{plan.width}) >> 32);
  }
  return load<Uints>(cells);
}

}  // namespace

std::size_t structured_scratch(const StructuredPlan& plan) {
  return (plan.size + plan.fold.words) * sizeof(Floats);
}

void structured_cells(const StructuredPlan& plan, const float* records, std::size_t count, std::size_t block,
                      std::uint32_t* cells, std::size_t stride, void* scratch) {
  auto* y = static_cast<Floats*>(scratch);
  auto* words = reinterpret_cast<Uints*>(y + plan.size);
  const float* signs = plan.signs + block * 3 * plan.size;
  const float* offsets = plan.offsets + block * plan.block_rows * plan.power;
  const Floats scale = spread(plan.scale);
  for (std::size_t first = 0; first < count; first += lanes) {
    const std::size_t live = count - first < lanes ? count - first : lanes;
    for (std::size_t k = 0; k < plan.dim; ++k) {
      Floats x = {};
      for (std::size_t l = 0; l < live; ++l) x[l] = records[(first + l) * plan.dim + k];
      y[k] = x * spread(signs[k]);
    }
    for (std::size_t k = plan.dim; k < plan.size; ++k) y[k] = Floats{};
    transform(y, plan.size);
    apply_signs(y, signs + plan.size, plan.size);
    transform(y, plan.size);
    apply_signs(y, signs + 2 * plan.size, plan.size);
    transform_leading(y, plan.size, plan.block_rows * plan.power);
    for (std::size_t row = 0; row < plan.block_rows; ++row) {
      for (std::size_t i = 0; i < plan.power; ++i) {
        const std::size_t at = row * plan.power + i;
        const Floats z = fused(y[at], scale, spread(offsets[at]));
        if (plan.words == Words::floors)
          words[i] = floor_words(z);
        else
          words[i / 32] = (i % 32 == 0 ? Uints{} : words[i / 32]) | sign_bit(z, i % 32);
      }
      const Uints cell = fold_row(plan.fold, block * plan.block_rows + row, plan.block_rows, words);
      for (std::size_t l = 0; l < live; ++l) cells[(first + l) * stride + row] = cell[l];
    }
  }
}

}  // namespace hushsum::HUSHSUM_CLONE
