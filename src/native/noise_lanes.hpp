// The vector types of a clone: as wide as its registers, by the vector extensions of GCC and Clang, no intrinsics.
#pragma once

#include <stdint.h>

namespace hushsum::HUSHSUM_CLONE {

#if defined(__AVX512F__)
constexpr unsigned lane_bytes = 64;
#elif defined(__AVX2__)
constexpr unsigned lane_bytes = 32;
#else
constexpr unsigned lane_bytes = 16;
#endif

typedef uint32_t Words32 __attribute__((vector_size(lane_bytes)));
typedef uint64_t Words64 __attribute__((vector_size(lane_bytes)));
typedef double Doubles __attribute__((vector_size(lane_bytes)));

constexpr unsigned lanes32 = lane_bytes / 4;
constexpr unsigned lanes64 = lane_bytes / 8;

template <class Vector, class Scalar>
inline __attribute__((always_inline)) Vector load(const Scalar* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class Vector, class Scalar>
inline __attribute__((always_inline)) void store(Scalar* to, Vector value) {
  __builtin_memcpy(to, &value, sizeof value);
}

}  // namespace hushsum::HUSHSUM_CLONE
