// Exact discrete Laplace and Gaussian draws.
//
// A draw is a function of real uniforms of which the stream gives the first bits. Doubles decide it whenever every
// completion of those bits gives the same value in spite of every rounding error; otherwise the resolver decides it
// with more bits and integers (about once in 10^9 draws at a scale of 1000). So the value never depends on how a double
// was rounded, nor on the clone or the compiler's use of fused operations. Below, u = 2^-53; doubles round to nearest.
#include "lanes.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

constexpr uint64_t mantissa_mask = 0x000fffffffffffff;
constexpr uint64_t one_bits = 0x3ff0000000000000;
constexpr uint64_t low_mantissa = 0x3fe6a09e00000000;  // just below sqrt(1/2): mantissas lie in [0.7071, 1.4143)
constexpr uint64_t two52_bits = 0x4330000000000000;
constexpr double round_constant = 0x1.8p52;  // x + this rounds |x| < 2^51 to the nearest integer
constexpr uint64_t round_bits = 0x4338000000000000;
constexpr uint64_t undecided = uint64_t{1} << 63;  // marks in the value lanes, far outside any value found here
constexpr uint64_t rejected = undecided + 1;

struct MinusLog {
  Doubles value;    // within 3u (value + 1) of -ln x, and 2^-35 more if brief
  Doubles inverse;  // a power of two, 1/x <= sqrt(2) * inverse
};

// -ln x for x in (0, 1); x = 0 gives a finite value and the inverse 2^1023, which leaves every decision open.
// With x = 2^e m, f = (m-1)/(m+1), |f| < 0.1716 and z = f^2: ln m = 2f (1 + z/3 + ... + z^9/19) + tail, where
// |tail| < 2 |f|^21 / (21 (1 - z)) < 2^-56; brief stops at z^5/11, with |tail| < 2 |f|^13 / (13 (1 - z)) < 2^-35.
// f has two roundings (m-1 is exact), 1 + z/3 + ... less than 1.1, the product one: 5u of |ln m| < 0.347, with the long
// series' tail below 2u. e ln2 has 1.3u (0.3u of them the constant's) of at most value + 0.35, the sum u of the value:
// in all below 2.3u value + 2.5u.
template <bool brief>
HUSHSUM_INLINE MinusLog minus_log(Doubles x) {
  const Longs shifted = (Longs)x + (one_bits - low_mantissa);
  const Longs exponent = shifted >> 52;
  const Doubles m = (Doubles)((shifted & mantissa_mask) + low_mantissa);
  const Doubles e = (Doubles)(exponent | two52_bits) - (0x1p52 + 1023.0);
  const Doubles f = (m - 1.0) / (m + 1.0);
  const Doubles z = f * f;
  Doubles q = Doubles{} + 1.0 / 11;
  if constexpr (!brief) {
    q = z * (1.0 / 19) + 1.0 / 17;
    q = q * z + 1.0 / 15;
    q = q * z + 1.0 / 13;
    q = q * z + 1.0 / 11;
  }
  q = q * z + 1.0 / 9;
  q = q * z + 1.0 / 7;
  q = q * z + 1.0 / 5;
  q = q * z + 1.0 / 3;
  const Doubles log_m = (f + f) * (q * z + 1.0);
  return {-(e * 0x1.62e42fefa39efp-1 + log_m), (Doubles)((2046 - exponent) << 52)};
}

HUSHSUM_INLINE Doubles absolute(Doubles x) { return (Doubles)((Longs)x & ~undecided); }

struct Magnitude {
  Doubles value;  // the integer
  Longs integer;  // the same
  Longs decided;  // all ones where every completion of the bits gives this integer
};

// The multiple of 2^-52 in [0, 1) with these 52 bits, exactly.
HUSHSUM_INLINE Doubles fraction(Longs bits) { return (Doubles)(bits | one_bits) - 1.0; }

// |Z| = floor(offset - scale ln U), the inverse of P(|Z| >= k) = 2 q^k / (1 + q), where x holds the first bits of U.
// Errors: 3u scale (L + 1) from L = -ln; 2u scale L from scale and product; 3u offset, with offset <= scale ln 2;
// u scale L from the sum: below 8u scale (L + 1). The bits not seen lower L by at most 2^-bits/x, which is at most
// sqrt(2) 2^-bits inverse.
template <int bits>
HUSHSUM_INLINE Magnitude magnitude(Doubles x, const LaplaceShape& shape) {
  constexpr double unseen = 1.5 / (uint64_t{1} << bits);
  const MinusLog log = minus_log<false>(x);
  const Doubles position = log.value * shape.scale + shape.offset;
  const Doubles rounding = (log.value + 1.0) * (shape.scale * 0x1p-50);
  const Doubles margin = rounding + log.inverse * (shape.scale * unseen) + shape.widen;
  const Doubles biased = position + round_constant;
  const Doubles nearest = biased - round_constant;
  const Doubles past = position - nearest;  // exact, in [-1/2, 1/2]
  const Longs below = (Longs)(past < 0.0);
  return {nearest - (Doubles)(below & one_bits), (Longs)biased - round_bits + below, (Longs)(absolute(past) > margin)};
}

HUSHSUM_INLINE Longs with_sign(Longs integer, Longs words) {
  const Longs sign = -(words >> 63);
  return (integer ^ sign) - sign;
}

HUSHSUM_INLINE Longs choose(Longs mask, Longs yes, uint64_t no) { return (yes & mask) | (~mask & no); }

HUSHSUM_INLINE bool any(Longs mask) {
  uint64_t all = 0;
  for (unsigned lane = 0; lane < long_lanes; ++lane) all |= mask[lane];
  return all != 0;
}

// Canonne, Kamath & Steinke 2020: keep a Laplace proposal y of scale t with probability exp(-g),
// g = (|y| - centre)^2 rate, by comparing L = -ln V with g. Errors: the rounded centre moves g by
// u ||y| - centre|/t <= u sqrt(2g) <= u (1 + g), since t > sigma; difference, squares and rate by 5u g; L is off by
// 3u (L + 1) + 2^-35: together below 8u (L + g) + 2^-34. The bits of V not seen lower L by sqrt(2) 2^-bits inverse.
//
// Layouts of the random words: narrow, one word with sign, 20 bits of V and 43 of U; wide, one word with sign and
// 52 bits of U, and half of another with 32 bits of V.
template <bool narrow>
bool gaussian_chunk_laid_out(const StreamId& id, const GaussianShape& shape, uint64_t chunk, int64_t* out,
                             uint32_t size, const Resolver& resolver) {
  constexpr uint32_t proposals = 2 * group_words;
  const Nonce nonce = nonce_of(id.draw, purpose_chunk, chunk);
  constexpr uint32_t groups = narrow ? 2 : 3;
  constexpr int magnitude_bits = narrow ? narrow_magnitude_bits : laplace_bits;
  constexpr int acceptance_bits = narrow ? narrow_acceptance_bits : wide_acceptance_bits;
  constexpr double unseen = 1.5 / (uint64_t{1} << acceptance_bits);
  constexpr uint64_t acceptance_mask = mantissa_mask & ~(mantissa_mask >> acceptance_bits);
  alignas(64) uint64_t words[groups * group_words];
  alignas(64) int64_t values[proposals];
  bool ok = true;
  uint32_t done = 0;
  for (uint32_t round = 0; ok && done < size; ++round) {
    // Positions and counters have 32 bits. With at least 2 of 5 proposals kept, 2^24 rounds are never reached.
    if (round >> 24 != 0) {
      ok = false;
      break;
    }
    for (uint32_t group = 0; group < groups; ++group) {
      keystream_group(id.key, nonce, (groups * round + group) * group_blocks,
                      reinterpret_cast<uint32_t*>(words + group * group_words));
    }
    const auto acceptance_word = [&words](uint32_t i) {
      if constexpr (narrow) {
        return words[i] << 1 >> (64 - acceptance_bits);
      } else {
        return i < group_words ? words[proposals + i] << 32 >> 32 : words[group_words + i] >> 32;
      }
    };
    Longs open{};
    for (uint32_t i = 0; i < proposals; i += long_lanes) {
      const Longs word = load<Longs>(words + i);
      Longs v = word << 1;
      if constexpr (!narrow) {
        v = load<Longs>(words + proposals + i % group_words);
        if (i < group_words) v <<= 32;
      }
      const Longs u = (word << (52 - magnitude_bits)) & mantissa_mask;
      const Magnitude found = magnitude<magnitude_bits>(fraction(u), shape.proposal);
      const MinusLog log = minus_log<true>(fraction((v >> 12) & acceptance_mask));
      const Doubles distance = found.value - shape.centre;
      const Doubles exponent = distance * distance * shape.rate;
      const Doubles excess = log.value - exponent;
      const Doubles margin = (log.value + exponent) * 0x1p-50 + log.inverse * unseen + (shape.proposal.widen + 0x1p-34);
      const Longs keep = (Longs)(excess > 0.0);
      const Longs decided = found.decided & (Longs)(absolute(excess) > margin);
      store(values + i, choose(decided, choose(keep, with_sign(found.integer, word), rejected), undecided));
      open |= ~decided;
    }
    if (any(open)) {
      for (uint32_t i = 0; ok && i < proposals && done < size; ++i) {
        Answer answer = static_cast<uint64_t>(values[i]) == rejected ? Answer::rejected : Answer::value;
        if (static_cast<uint64_t>(values[i]) == undecided) {
          answer = resolver.decide(resolver.context, chunk << 32 | (uint64_t{round} * proposals + i), words[i],
                                   static_cast<uint32_t>(acceptance_word(i)), values + i);
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

}  // namespace

bool laplace_chunk(const StreamId& id, const LaplaceShape& shape, uint64_t chunk, int64_t* out, uint32_t size,
                   const Resolver& resolver) {
  const Nonce nonce = nonce_of(id.draw, purpose_chunk, chunk);
  alignas(64) uint64_t words[group_words];
  alignas(64) int64_t values[group_words];
  bool ok = true;
  for (uint32_t done = 0; ok && done < size; done += group_words) {
    keystream_group(id.key, nonce, done / group_words * group_blocks, reinterpret_cast<uint32_t*>(words));
    Longs open{};
    for (uint32_t i = 0; i < group_words; i += long_lanes) {
      const Longs word = load<Longs>(words + i);
      const Magnitude found = magnitude<laplace_bits>(fraction(word & mantissa_mask), shape);
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

bool gaussian_chunk(const StreamId& id, const GaussianShape& shape, uint64_t chunk, int64_t* out, uint32_t size,
                    const Resolver& resolver) {
  const auto loop = shape.narrow ? gaussian_chunk_laid_out<true> : gaussian_chunk_laid_out<false>;
  return loop(id, shape, chunk, out, size, resolver);
}

}  // namespace hushsum::HUSHSUM_CLONE
