// Hadamard transforms of `lanes` records beside each other, for the families that hash the outputs and those that take
// waves of them.
//
// Lanes are records, so every butterfly is vertical and a record never meets another. Butterflies run from the widest
// distance to the narrowest in every clone, which fixes the tree of additions.
#pragma once

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

// The Hadamard transform of every `span` values of y.
inline void transform(Floats* y, std::size_t size, std::size_t span) {
  for (; span >= 128 || span == 64 || span == 8; span /= 8) pass<8>(y, size, span);
  if (span == 32) pass<2>(y, size, span), span = 16;
  if (span == 16) pass<16>(y, size, span);
  if (span == 4) pass<4>(y, size, span);
  if (span == 2) pass<2>(y, size, span);
}

inline void transform_signed(Floats* y, const float* signs, std::size_t size) {
  if (size >= 8) {
    signed_pass<8>(y, signs, size);
    transform(y, size, size / 8);
  } else {
    signed_pass<1>(y, signs, size);
    transform(y, size, size);
  }
}

// y[k] = the k-th coordinate of `live` records, with its sign; zeros in the other lanes and beyond the dimension.
inline void load_records(std::size_t dim, std::size_t size, const float* records, std::size_t live, const float* signs,
                         Floats* y) {
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
  for (; k < size; ++k) y[k] = Floats{};
}

}  // namespace

}  // namespace hushsum::HUSHSUM_CLONE
