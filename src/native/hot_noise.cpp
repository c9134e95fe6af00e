// Exact discrete Laplace and Gaussian draws.
//
// A draw is a function of real uniforms of which the stream gives the first bits. Doubles decide it whenever every
// completion of those bits gives the same value in spite of every rounding error; otherwise the resolver decides it
// with more bits and integers (about once in 10^9 draws at a scale of 1000). So the value never depends on how a double
// was rounded, nor on the clone or the compiler's use of fused operations. Below, u = 2^-53; doubles round to nearest.
#include "lanes.hpp"
#include "noise.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

constexpr uint64_t mantissa_mask = 0x000fffffffffffff;
constexpr uint64_t one_bits = 0x3ff0000000000000;
constexpr uint64_t low_mantissa = 0x3fe6a09e00000000;   // just below sqrt(1/2): mantissas lie in [0.7071, 1.4143)
constexpr uint64_t two52_bits = 0x4330000000000000;
constexpr double round_constant = 0x1.8p52;             // x + this rounds |x| < 2^51 to the nearest integer
constexpr uint64_t round_bits = 0x4338000000000000;
constexpr uint64_t undecided = uint64_t{1} << 63;       // marks in the value lanes, far outside any value found here
constexpr uint64_t rejected = undecided + 1;

struct MinusLog {
  Doubles value;    // within 3u (value + 1) of -ln x
  Doubles inverse;  // a power of two, 1/x <= sqrt(2) * inverse
};

// -ln x for x in (0, 1); x = 0 gives a finite value and the inverse 2^1023, which leaves every decision open.
// With x = 2^e m, f = (m-1)/(m+1), |f| < 0.1716 and z = f^2: ln m = 2f (1 + z/3 + ... + z^9/19) + tail, where
// |tail| < 2 |f|^21 / (21 (1 - z)) < 2^-56. f has two roundings (m-1 is exact), 1 + z/3 + ... less than 1.1, the product
// one: 5u of |ln m| < 0.347, with the tail below 2u. e ln2 has 1.3u (0.3u of them the constant's) of at most value + 0.35,
// the sum u of the value: in all below 2.3u value + 2.5u.
inline __attribute__((always_inline)) MinusLog minus_log(Doubles x) {
  const Words64 shifted = (Words64)x + (one_bits - low_mantissa);
  const Words64 exponent = shifted >> 52;
  const Doubles m = (Doubles)((shifted & mantissa_mask) + low_mantissa);
  const Doubles e = (Doubles)(exponent | two52_bits) - (0x1p52 + 1023.0);
  const Doubles f = (m - 1.0) / (m + 1.0);
  const Doubles z = f * f;
  Doubles q = z * (1.0 / 19) + 1.0 / 17;
  q = q * z + 1.0 / 15;
  q = q * z + 1.0 / 13;
  q = q * z + 1.0 / 11;
  q = q * z + 1.0 / 9;
  q = q * z + 1.0 / 7;
  q = q * z + 1.0 / 5;
  q = q * z + 1.0 / 3;
  const Doubles log_m = (f + f) * (q * z + 1.0);
  return {-(e * 0x1.62e42fefa39efp-1 + log_m), (Doubles)((2046 - exponent) << 52)};
}

inline __attribute__((always_inline)) Doubles absolute(Doubles x) {
  return (Doubles)((Words64)x & ~undecided);
}

struct Magnitude {
  Doubles value;    // the integer
  Words64 integer;  // the same
  Words64 decided;  // all ones where every completion of the bits gives this integer
};

// |Z| = floor(offset - scale ln U), the inverse of P(|Z| >= k) = 2 q^k / (1 + q), where the low 52 bits of the word are
// the first bits of U. Errors: 3u scale (L + 1) from L = -ln; 2u scale L from scale and product; 3u offset, with
// offset <= scale ln 2; u scale L from the sum: below 8u scale (L + 1). The bits not seen lower L by at most
// 2^-52/x < 4u inverse.
inline __attribute__((always_inline)) Magnitude magnitude(Words64 words, const LaplaceShape& shape) {
  const Doubles x = (Doubles)((words & mantissa_mask) | one_bits) - 1.0;
  const MinusLog log = minus_log(x);
  const Doubles position = log.value * shape.scale + shape.offset;
  const Doubles margin = (log.value + log.inverse * 0.5 + 1.0) * (shape.scale * 0x1p-50) + shape.widen;
  const Doubles biased = position + round_constant;
  const Doubles nearest = biased - round_constant;
  const Doubles past = position - nearest;  // exact, in [-1/2, 1/2]
  const Words64 below = (Words64)(past < 0.0);
  return {nearest - (Doubles)(below & one_bits), (Words64)biased - round_bits + below,
          (Words64)(absolute(past) > margin)};
}

inline __attribute__((always_inline)) Words64 with_sign(Words64 integer, Words64 words) {
  const Words64 sign = -(words >> 63);
  return (integer ^ sign) - sign;
}

inline __attribute__((always_inline)) Words64 choose(Words64 mask, Words64 yes, uint64_t no) {
  return (yes & mask) | (~mask & no);
}

inline __attribute__((always_inline)) bool any(Words64 mask) {
  uint64_t all = 0;
  for (unsigned lane = 0; lane < lanes64; ++lane) all |= mask[lane];
  return all != 0;
}

}  // namespace

bool laplace_chunk(const StreamId& id, const LaplaceShape& shape, uint64_t chunk, int64_t* out, uint32_t size,
                   const Resolver& resolver) {
  const Nonce nonce = nonce_of(id.draw, purpose_chunk, chunk);
  alignas(64) uint64_t words[group_words];
  alignas(64) int64_t values[group_words];
  bool ok = true;
  for (uint32_t done = 0; ok && done < size; done += group_words) {
    keystream_group(id.key, nonce, done / group_words * group_blocks, reinterpret_cast<uint32_t*>(words));
    Words64 open{};
    for (uint32_t i = 0; i < group_words; i += lanes64) {
      const Words64 word = load<Words64>(words + i);
      const Magnitude found = magnitude(word, shape);
      store(values + i, choose(found.decided, with_sign(found.integer, word), undecided));
      open |= ~found.decided;
    }
    const uint32_t take = size - done < group_words ? size - done : group_words;
    if (any(open)) {
      for (uint32_t i = 0; ok && i < take; ++i) {
        if (static_cast<uint64_t>(values[i]) != undecided) continue;
        ok = resolver.decide(resolver.context, chunk << 32 | (done + i), words[i], 0, values + i) == Answer::value;
      }
    }
    __builtin_memcpy(out + done, values, take * sizeof *values);
  }
  wipe(words, sizeof words);
  wipe(values, sizeof values);
  return ok;
}

// Canonne, Kamath & Steinke 2020: keep a Laplace proposal y of scale t with probability exp(-g),
// g = (|y| - centre)^2 rate, by comparing L = -ln V with g. Errors: the rounded centre moves g by
// u ||y| - centre|/t <= u sqrt(2g) <= u (1 + g), since t > sigma; difference, squares and rate by 5u g; L is off by
// 3u (L + 1): together below 8u (L + g + 1). The bits of V not seen lower L by at most sqrt(2) 2^-32 inverse.
bool gaussian_chunk(const StreamId& id, const GaussianShape& shape, uint64_t chunk, int64_t* out, uint32_t size,
                    const Resolver& resolver) {
  constexpr uint32_t proposals = 2 * group_words;
  const Nonce nonce = nonce_of(id.draw, purpose_chunk, chunk);
  alignas(64) uint64_t words[3 * group_words];
  alignas(64) int64_t values[proposals];
  bool ok = true;
  uint32_t done = 0;
  for (uint32_t round = 0; ok && done < size; ++round) {
    // Positions and counters have 32 bits. With at least 2 of 5 proposals kept, 2^24 rounds are never reached.
    if (round >> 24 != 0) {
      ok = false;
      break;
    }
    for (uint32_t group = 0; group < 3; ++group) {
      keystream_group(id.key, nonce, (3 * round + group) * group_blocks,
                      reinterpret_cast<uint32_t*>(words + group * group_words));
    }
    const uint64_t* const acceptance = words + proposals;
    Words64 open{};
    for (uint32_t i = 0; i < proposals; i += lanes64) {
      const Words64 word = load<Words64>(words + i);
      const Words64 pair = load<Words64>(acceptance + i % group_words);
      const Words64 v = (i < group_words ? pair << 32 : pair) >> 12 & 0x000ffffffff00000;
      const Magnitude found = magnitude(word, shape.proposal);
      const MinusLog log = minus_log((Doubles)(v | one_bits) - 1.0);
      const Doubles distance = found.value - shape.centre;
      const Doubles exponent = distance * distance * shape.rate;
      const Doubles excess = log.value - exponent;
      const Doubles margin = (log.value + exponent + 1.0) * 0x1p-50 + log.inverse * 0x1.8p-32 + shape.proposal.widen;
      const Words64 keep = (Words64)(excess > 0.0);
      const Words64 decided = found.decided & (Words64)(absolute(excess) > margin);
      store(values + i, choose(decided, choose(keep, with_sign(found.integer, word), rejected), undecided));
      open |= ~decided;
    }
    if (any(open)) {
      for (uint32_t i = 0; ok && i < proposals && done < size; ++i) {
        Answer answer = static_cast<uint64_t>(values[i]) == rejected ? Answer::rejected : Answer::value;
        if (static_cast<uint64_t>(values[i]) == undecided) {
          const uint64_t pair = acceptance[i % group_words];
          answer = resolver.decide(resolver.context, chunk << 32 | (uint64_t{round} * proposals + i), words[i],
                                   static_cast<uint32_t>(i < group_words ? pair : pair >> 32), values + i);
        }
        ok = answer != Answer::failed;
        if (answer == Answer::value) out[done++] = values[i];
      }
    } else if (size - done >= proposals) {
      for (uint32_t i = 0; i < proposals; ++i) {
        out[done] = values[i];
        done += static_cast<uint64_t>(values[i]) != rejected;
      }
    } else {
      for (uint32_t i = 0; i < proposals && done < size; ++i) {
        if (static_cast<uint64_t>(values[i]) != rejected) out[done++] = values[i];
      }
    }
  }
  wipe(words, sizeof words);
  wipe(values, sizeof values);
  return ok;
}

}  // namespace hushsum::HUSHSUM_CLONE
