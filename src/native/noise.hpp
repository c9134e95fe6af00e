// What the noise loops take and return: streams, laws, and the resolver of undecided draws.
#pragma once

#include <stdint.h>

namespace hushsum {

constexpr uint32_t group_blocks = 16;               // ChaCha20 blocks made at once
constexpr uint32_t group_words = group_blocks * 8;  // the same in 64-bit words
constexpr uint32_t chunk_draws = 16384;             // outputs that share one nonce; fixes the output for any threads

// A position in the key's space of streams. Two different (draw, purpose, index) never share a block.
struct StreamId {
  const uint32_t* key;  // 8 words
  uint32_t draw;        // which table or count of the release, below 2^24
};

enum Purpose : uint32_t { purpose_chunk = 0, purpose_more_magnitude = 1, purpose_more_acceptance = 2 };

struct Nonce {
  uint32_t words[3];
};

static constexpr __attribute__((always_inline)) Nonce nonce_of(uint32_t draw, Purpose purpose, uint64_t index) {
  return {{draw | (static_cast<uint32_t>(purpose) << 24), static_cast<uint32_t>(index),
           static_cast<uint32_t>(index >> 32)}};
}

// The discrete Laplace law P(z) ~ exp(-|z|/scale); offset is scale * ln(2 / (1 + exp(-1/scale))).
struct LaplaceShape {
  double scale;
  double offset;
  double widen;  // added to every margin; 0 except in tests of the exact path
};

// A proposal y of scale t is kept with probability exp(-(|y| - centre)^2 rate), centre = variance/t and
// rate = 1/(2 variance).
struct GaussianShape {
  LaplaceShape proposal;
  double centre;
  double rate;
  bool narrow;  // one word per proposal instead of one and a half; see the two layouts below
};

// How many first bits of the magnitude's uniform, and of the acceptance's, a proposal's random words hold.
constexpr int laplace_bits = 52;
constexpr int wide_acceptance_bits = 32;
constexpr int narrow_magnitude_bits = 43;
constexpr int narrow_acceptance_bits = 20;

enum class Answer { failed, value, rejected };

// Decides one value exactly when doubles cannot, from its position (chunk << 32 | place) and its two random words.
struct Resolver {
  void* context;
  Answer (*decide)(void* context, uint64_t index, uint64_t magnitude_word, uint32_t acceptance_word, int64_t* value);
};

// Zeroes memory in a way the optimiser keeps. Inlined always: a copy shared between clones could be one that this
// processor cannot run.
static inline __attribute__((always_inline)) void wipe(void* memory, unsigned long bytes) {
  __builtin_memset(memory, 0, bytes);
  __asm__ __volatile__("" : : "r"(memory) : "memory");
}

}  // namespace hushsum
