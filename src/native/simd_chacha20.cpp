// The ChaCha20 keystream of RFC 8439, sixteen blocks at a time, one block per lane.
#include "lanes.hpp"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "keystream words are read in memory order");

namespace hushsum::HUSHSUM_CLONE {

namespace {

template <int bits>
HUSHSUM_INLINE Uints rotate(Uints x) {
  return (x << bits) | (x >> (32 - bits));
}

HUSHSUM_INLINE void quarter_round(Uints& a, Uints& b, Uints& c, Uints& d) {
  a += b;
  d = rotate<16>(d ^ a);
  c += d;
  b = rotate<12>(b ^ c);
  a += b;
  d = rotate<8>(d ^ a);
  c += d;
  b = rotate<7>(b ^ c);
}

}  // namespace

void keystream_group(const uint32_t* key, const Nonce& nonce, uint32_t counter, uint32_t* out) {
  for (uint32_t first = 0; first < group_blocks; first += lanes) {
    Uints counters;
    for (std::size_t lane = 0; lane < lanes; ++lane) counters[lane] = counter + first + lane;
    const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    Uints x[16];
    for (int i = 0; i < 4; ++i) x[i] = Uints{} + constants[i];
    for (int i = 0; i < 8; ++i) x[4 + i] = Uints{} + key[i];
    x[12] = counters;
    for (int i = 0; i < 3; ++i) x[13 + i] = Uints{} + nonce.words[i];
    for (int round = 0; round < 10; ++round) {
      quarter_round(x[0], x[4], x[8], x[12]);
      quarter_round(x[1], x[5], x[9], x[13]);
      quarter_round(x[2], x[6], x[10], x[14]);
      quarter_round(x[3], x[7], x[11], x[15]);
      quarter_round(x[0], x[5], x[10], x[15]);
      quarter_round(x[1], x[6], x[11], x[12]);
      quarter_round(x[2], x[7], x[8], x[13]);
      quarter_round(x[3], x[4], x[9], x[14]);
    }
    for (int i = 0; i < 4; ++i) store(out + 16 * i + first, x[i] + constants[i]);
    for (int i = 0; i < 8; ++i) store(out + 16 * (4 + i) + first, x[4 + i] + key[i]);
    store(out + 16 * 12 + first, x[12] + counters);
    for (int i = 0; i < 3; ++i) store(out + 16 * (13 + i) + first, x[13 + i] + nonce.words[i]);
  }
}

}  // namespace hushsum::HUSHSUM_CLONE
