// Structured projections: y = H S3 H S2 H S1 x with Hadamard matrices H and diagonal signs S, one triple per block.
//
// Lanes are records, so every butterfly is vertical and a record never meets another. Butterflies run from the widest
// distance to the narrowest in every clone, which fixes the tree of additions. The last transform computes only the
// leading outputs that a block of rows uses.
#include "lanes.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

// Passes of radix 2 to 16 do the same additions as single butterflies and touch memory less often.
template <std::size_t Radix>
HUSHSUM_INLINE void butterflies(Floats (&a)[Radix]) {
  HUSHSUM_UNROLL
  for (std::size_t half = Radix / 2; half > 0; half /= 2) HUSHSUM_UNROLL
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
      HUSHSUM_UNROLL
      for (std::size_t t = 0; t < Radix; ++t) a[t] = y[j + t * step];
      butterflies<Radix>(a);
      HUSHSUM_UNROLL
      for (std::size_t t = 0; t < Radix; ++t) y[j + t * step] = a[t];
    }
}

// The widest butterflies, on inputs that take their signs on the way.
template <std::size_t Radix>
void signed_pass(Floats* y, const float* signs, std::size_t size) {
  const std::size_t step = size / Radix;
  for (std::size_t j = 0; j < step; ++j) {
    Floats a[Radix];
    HUSHSUM_UNROLL
    for (std::size_t t = 0; t < Radix; ++t) a[t] = y[j + t * step] * spread(signs[j + t * step]);
    butterflies<Radix>(a);
    HUSHSUM_UNROLL
    for (std::size_t t = 0; t < Radix; ++t) y[j + t * step] = a[t];
  }
}

// The same for the first size / Radix outputs only, which need nothing but sums.
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

// The Hadamard transform of every `span` values of y.
void transform(Floats* y, std::size_t size, std::size_t span) {
  for (; span >= 128 || span == 64 || span == 8; span /= 8) pass<8>(y, size, span);
  if (span == 32) pass<2>(y, size, span), span = 16;
  if (span == 16) pass<16>(y, size, span);
  if (span == 4) pass<4>(y, size, span);
  if (span == 2) pass<2>(y, size, span);
}

void transform_signed(Floats* y, const float* signs, std::size_t size) {
  if (size >= 8) {
    signed_pass<8>(y, signs, size);
    transform(y, size, size / 8);
  } else {
    signed_pass<1>(y, signs, size);
    transform(y, size, size);
  }
}

// The first `wanted` outputs of the same, and perhaps more.
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

// y[k] = the k-th coordinate of `live` records, with its sign; zeros in the other lanes and beyond the dimension.
void load_records(const StructuredParameters& plan, const float* records, std::size_t live, const float* signs,
                  Floats* y) {
  const std::size_t dim = plan.dim;
  std::size_t k = 0;
  if (live == lanes) {
    for (; k + lanes <= dim; k += lanes) {
      Floats square[lanes];
      HUSHSUM_UNROLL
      for (std::size_t l = 0; l < lanes; ++l) square[l] = load<Floats>(records + l * dim + k);
      transpose(square);
      HUSHSUM_UNROLL
      for (std::size_t l = 0; l < lanes; ++l) y[k + l] = square[l] * spread(signs[k + l]);
    }
  }
  for (; k < dim; ++k) {
    float x[lanes] = {};
    for (std::size_t l = 0; l < live; ++l) x[l] = records[l * dim + k];
    y[k] = load<Floats>(x) * spread(signs[k]);
  }
  for (; k < plan.size; ++k) y[k] = Floats{};
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
    load_records(plan, records + first * plan.dim, live, signs, y);
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
