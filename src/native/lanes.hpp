// Vector types of a clone's native width, the operations that the hash families share, and the functions of a clone.
//
// Only the compilers' portable vector extensions are used, but for one conversion. `fused` is one correctly rounded
// a*b+c per lane in every clone: an instruction where there is one, the C library's fmaf elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "dispatch.hpp"

namespace hushsum::HUSHSUM_CLONE {

#if defined(__AVX512F__)
constexpr std::size_t lanes = 16, tile_vectors = 2, tile_records = 12;
#elif defined(__AVX2__)
constexpr std::size_t lanes = 8, tile_vectors = 2, tile_records = 6;
#elif defined(__ARM_NEON)
constexpr std::size_t lanes = 4, tile_vectors = 4, tile_records = 6;
#else
constexpr std::size_t lanes = 4, tile_vectors = 4, tile_records = 2;
#endif
constexpr std::size_t panel_rows = lanes * tile_vectors;
#if defined(__AVX512DQ__)
constexpr bool wide_products = true;  // 64-bit products of vectors are one instruction
#else
constexpr bool wide_products = false;
#endif

typedef float Floats __attribute__((vector_size(lanes * 4)));
typedef std::int32_t Ints __attribute__((vector_size(lanes * 4)));
typedef std::uint32_t Uints __attribute__((vector_size(lanes * 4)));
typedef std::uint64_t Longs __attribute__((vector_size(lanes * 4)));
typedef double Doubles __attribute__((vector_size(lanes * 4)));
constexpr std::size_t long_lanes = lanes / 2;  // of Longs and Doubles

#define HUSHSUM_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define HUSHSUM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HUSHSUM_UNROLL _Pragma("GCC unroll 16")
#endif
#define HUSHSUM_INLINE_MEMBER __attribute__((always_inline))

template <class Vector, class T>
HUSHSUM_INLINE Vector load(const T* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class Vector, class T>
HUSHSUM_INLINE void store(T* to, Vector v) {
  std::memcpy(to, &v, sizeof v);
}

// x - 0 is x, also for -0, and compilers make it a broadcast.
HUSHSUM_INLINE Floats spread(float x) { return x - Floats{}; }

template <class Vector, std::size_t... Lane>
HUSHSUM_INLINE void interleave(Vector a, Vector b, Vector& lower, Vector& upper, std::index_sequence<Lane...>) {
  lower = __builtin_shufflevector(a, b, (Lane / 2 + Lane % 2 * lanes)...);
  upper = __builtin_shufflevector(a, b, (lanes / 2 + Lane / 2 + Lane % 2 * lanes)...);
}

// Rows and columns of a square exchanged, by log2(lanes) rounds that interleave its upper half with its lower.
template <class Vector>
HUSHSUM_INLINE void transpose(Vector (&square)[lanes]) {
  HUSHSUM_UNROLL
  for (std::size_t round = 1; round < lanes; round *= 2) {
    Vector mixed[lanes];
    HUSHSUM_UNROLL
    for (std::size_t j = 0; j < lanes / 2; ++j)
      interleave(square[j], square[j + lanes / 2], mixed[2 * j], mixed[2 * j + 1], std::make_index_sequence<lanes>{});
    HUSHSUM_UNROLL
    for (std::size_t j = 0; j < lanes; ++j) square[j] = mixed[j];
  }
}

HUSHSUM_INLINE Floats fused(Floats a, Floats b, Floats c) {
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#else
  Floats v;
  for (std::size_t l = 0; l < lanes; ++l) v[l] = __builtin_fmaf(a[l], b[l], c[l]);
  return v;
#endif
}

// floor(clamp(z, -2^30, 2^30)); the comparisons send NaN to the lower bound. Truncation and a correction, not floorf:
// the conversion is exact in this range and every clone has it.
HUSHSUM_INLINE Uints floor_words(Floats z) {
  const Floats low = spread(-1073741824.0f), high = spread(1073741824.0f);
  z = z > low ? z : low;
  z = z < high ? z : high;
#if defined(__AVX512F__)
  // One instruction that rounds down, for the same words.
  return (Uints)_mm512_maskz_cvt_roundps_epi32(0xffff, (__m512)z, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#else
  const Ints truncated = __builtin_convertvector(z, Ints);
  const Ints above = (Ints)(__builtin_convertvector(truncated, Floats) > z);
  return (Uints)(truncated + above);
#endif
}

// Bit `position` of a word: 1 where z >= 0; NaN gives 0.
HUSHSUM_INLINE Uints sign_bit(Floats z, std::size_t position) {
  const Floats zero = {};
  return (Uints)(z >= zero) & (std::uint32_t{1} << position);
}

HUSHSUM_INLINE Longs spread(std::uint64_t x) { return Longs{} + x; }

HUSHSUM_INLINE Longs even_lanes(Uints v) { return (Longs)v & 0xffffffffu; }
HUSHSUM_INLINE Longs odd_lanes(Uints v) { return (Longs)v >> 32; }

// A bijection of words that leaves no arithmetic progression one: a product, then an exclusive or with its upper half.
HUSHSUM_INLINE Uints scattered(Uints word) {
  word *= 0x9e3779b1u;
  return word ^ (word >> 16);
}

// (h * width) >> 32 for the upper halves h of the sums.
HUSHSUM_INLINE Uints cells_of_sums(Longs even, Longs odd, std::uint32_t width) {
  even >>= 32;
  if (!wide_products && width < 65536) {
    // Exact in 32 bits: with h = a 2^16 + b this is (a width + (b width >> 16)) >> 16.
    const Uints hash = (Uints)(even | (odd & ~std::uint64_t{0xffffffffu}));
    return ((hash >> 16) * width + (((hash & 0xffffu) * width) >> 16)) >> 16;
  }
  const Longs many = spread(std::uint64_t{width});
  return (Uints)(((even * many) >> 32) | (((odd >> 32) * many) & ~std::uint64_t{0xffffffffu}));
}

// The cells of one record in one panel, from words[i * word_stride + lane]; words from `used` on are zeros, which add
// nothing.
HUSHSUM_INLINE void fold_words(const FoldParameters plan, std::size_t panel, const std::uint32_t* words,
                               std::size_t word_stride, std::uint32_t* cells, std::size_t used) {
  if (!plan.fold) {
    std::memcpy(cells, words, panel_rows * sizeof *cells);
    return;
  }
  const std::uint64_t* multipliers = plan.multipliers + panel * plan.words * panel_rows;
  const std::uint64_t* addends = plan.addends + panel * panel_rows;
  HUSHSUM_UNROLL
  for (std::size_t v = 0; v < panel_rows; v += lanes) {
    Longs even = load<Longs>(addends + v), odd = load<Longs>(addends + v + lanes / 2);
    for (std::size_t i = 0; i < used; ++i) {
      Uints word = load<Uints>(words + i * word_stride + v);
      if (plan.scattered) word = scattered(word);
      even += load<Longs>(multipliers + i * panel_rows + v) * even_lanes(word);
      odd += load<Longs>(multipliers + i * panel_rows + v + lanes / 2) * odd_lanes(word);
    }
    store(cells + v, cells_of_sums(even, odd, plan.width));
  }
}

HUSHSUM_INLINE void fold_words(const FoldParameters plan, std::size_t panel, const std::uint32_t* words,
                               std::size_t word_stride, std::uint32_t* cells) {
  fold_words(plan, panel, words, word_stride, cells, plan.words);
}

void dense_cells(const DenseParameters&, const float*, std::size_t, std::size_t, std::size_t, std::uint32_t*,
                 std::size_t, void*);
std::size_t dense_scratch(const DenseParameters&);
void dense_count(const DenseParameters&, const float*, std::size_t, std::size_t, std::uint16_t*, void*);
template <class Value>
void dense_total(const DenseParameters&, const float*, std::size_t, std::size_t, const Value*, std::int64_t*, void*);
void add_waves(const ProjectionParameters&, const float*, std::size_t, std::size_t, std::int32_t*);
void write_waves(const ProjectionParameters&, const float*, std::size_t, std::size_t, float*, std::size_t);
void read_waves(const ProjectionParameters&, const float*, std::size_t, std::size_t, std::size_t, const float*,
                double*);
void spread_waves(const ProjectionParameters&, const float*, std::size_t, std::size_t, std::size_t, std::size_t,
                  std::size_t, const float*, BlockSums*);
void add_structured_waves(const StructuredWaveParameters&, const float*, std::size_t, std::size_t, std::int32_t*,
                          void*);
void read_structured_waves(const StructuredWaveParameters&, const float*, std::size_t, std::size_t, const float*,
                           double*, void*);
void spread_structured_waves(const StructuredWaveParameters&, const float*, std::size_t, std::size_t, bool, bool,
                             const float*, BlockSums*, void*);
std::size_t structured_waves_scratch(const StructuredWaveParameters&);
void structured_cells(const StructuredParameters&, const float*, std::size_t, std::size_t, std::uint32_t*, std::size_t,
                      void*);
std::size_t structured_scratch(const StructuredParameters&);
void min_cells(const MinParameters&, const std::uint32_t*, const std::int64_t*, std::size_t, std::size_t, std::size_t,
               std::uint32_t*, std::size_t, void*);
std::size_t min_scratch(const MinParameters&);
void mix_values(const std::int64_t*, std::size_t, std::uint64_t, std::uint32_t*);
void code_cells(const CodeParameters&, const std::int32_t*, std::size_t, std::size_t, std::size_t, std::uint32_t*,
                std::size_t, void*);
std::size_t code_scratch(const CodeParameters&);

void keystream_group(const std::uint32_t*, const Nonce&, std::uint32_t, std::uint32_t*);
bool laplace_chunk(const StreamId&, const LaplaceShape&, std::uint64_t, std::int64_t*, std::uint32_t, const Resolver&);
bool gaussian_chunk(const StreamId&, const GaussianShape&, std::uint64_t, std::int64_t*, std::uint32_t,
                    const Resolver&);

extern const SimdLoops loops;

}  // namespace hushsum::HUSHSUM_CLONE
