// The cosine and the sine of a phase, the same in every clone.
//
// A phase t is in turns. Its fraction u = t - round(t) is exact, and is clamped to [-1/2, 1/2] where t is too large for
// one, or no number. Minimax polynomials in u^2 follow, by Horner's rule in fused multiply-adds. The last of them may
// add 3 * 2^22 as well, which leaves the nearest integer (ties to even) in the low bits of the float: so one chain of
// correctly rounded operations decides a record's integers.
#pragma once

#include "lanes.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

constexpr float rounder = 12582912.0f;  // 3 * 2^22: floats near it are the integers
constexpr std::uint32_t rounder_bits = 0x4b400000u;

// sin(2 pi u) = u * S(u^2) and cos(2 pi u) = 1 + u^2 * C(u^2) on [-1/2, 1/2], within 1e-7 and 9e-7.
constexpr double sine_terms[] = {6.28318281855543,   -41.34142139902815, 81.59618388037231,
                                 -76.58010059069983, 41.20539511562007,  -12.27126270500227};
constexpr double cosine_terms[] = {-19.739049627337103, 64.93027910833467, -85.28685244792894, 58.85254905884002,
                                   -21.162601230825686};

HUSHSUM_INLINE Floats fraction(Floats t) {
  const Floats low = spread(-0.5f), high = spread(0.5f), big = spread(rounder);
  Floats u = t - ((t + big) - big);
  u = u > low ? u : low;
  return u < high ? u : high;
}

template <std::size_t Terms>
HUSHSUM_INLINE Floats polynomial(const double (&terms)[Terms], double amplitude, Floats x) {
  Floats value = spread(static_cast<float>(amplitude * terms[Terms - 1]));
  HUSHSUM_UNROLL
  for (std::size_t i = 2; i <= Terms; ++i)
    value = fused(value, x, spread(static_cast<float>(amplitude * terms[Terms - i])));
  return value;
}

struct Wave {
  HUSHSUM_INLINE_MEMBER Wave(Floats t, double amplitude) : u(fraction(t)), square(u * u), amplitude(amplitude) {}
  HUSHSUM_INLINE_MEMBER Floats cosine(float plus) const {
    return fused(square, polynomial(cosine_terms, amplitude, square), spread(static_cast<float>(amplitude) + plus));
  }
  HUSHSUM_INLINE_MEMBER Floats sine(float plus) const {
    return fused(u, polynomial(sine_terms, amplitude, square), spread(plus));
  }

  Floats u, square;
  double amplitude;
};

}  // namespace

}  // namespace hushsum::HUSHSUM_CLONE
