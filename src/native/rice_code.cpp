#include "rice_code.hpp"

#include <bit>

namespace hushsum {

namespace {

constexpr std::size_t block_values = 4096;
constexpr unsigned most_zeros = 31;
constexpr unsigned largest_k = 62;

std::uint64_t natural(std::int64_t value, std::int64_t centre) {
  const std::uint64_t distance = static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(centre);
  return (distance << 1) ^ (std::uint64_t{0} - (distance >> 63));
}

std::int64_t value_of(std::uint64_t z, std::int64_t centre) {
  const std::uint64_t distance = (z >> 1) ^ (std::uint64_t{0} - (z & 1));
  return static_cast<std::int64_t>(distance + static_cast<std::uint64_t>(centre));
}

class Writer {
 public:
  explicit Writer(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  void put(std::uint64_t bits, unsigned many) {
    for (; many > 32; many -= 32, bits >>= 32) put32(bits & 0xffffffffu, 32);
    put32(bits, many);
  }

  void end() {
    for (; held_ > 0; held_ -= held_ < 8 ? held_ : 8, pending_ >>= 8)
      bytes_.push_back(static_cast<std::uint8_t>(pending_));
    pending_ = 0;
  }

 private:
  void put32(std::uint64_t bits, unsigned many) {
    pending_ |= bits << held_;
    for (held_ += many; held_ >= 8; held_ -= 8, pending_ >>= 8) bytes_.push_back(static_cast<std::uint8_t>(pending_));
  }

  std::vector<std::uint8_t>& bytes_;
  std::uint64_t pending_ = 0;
  unsigned held_ = 0;
};

// Reads past the end give zeros and are found by `ended`, once a block.
class BitReader {
 public:
  BitReader(const std::uint8_t* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}

  unsigned zeros() {
    fill();
    const unsigned run = pending_ == 0 ? 64 : static_cast<unsigned>(std::countr_zero(pending_));
    if (run <= most_zeros) drop(run + 1);
    return run;
  }

  std::uint64_t take(unsigned many) {
    std::uint64_t low = 0;
    unsigned had = 0;
    for (; many > 32; many -= 32, had += 32) low |= take32(32) << had;
    return low | take32(many) << had;
  }

  // The rest of the byte must be zeros: one spelling.
  bool close() {
    const bool clean = (pending_ & ((std::uint64_t{1} << held_ % 8) - 1)) == 0;
    drop(held_ % 8);
    return clean && !overrun_;
  }

  bool ended() const { return at_ == end_ && held_ == 0; }
  bool overrun() const { return overrun_; }

 private:
  void fill() {
    for (; held_ <= 56 && at_ != end_; held_ += 8) pending_ |= std::uint64_t{*at_++} << held_;
  }

  void drop(unsigned many) {
    overrun_ = overrun_ || many > held_;
    pending_ = many >= 64 ? 0 : pending_ >> many;
    held_ = many > held_ ? 0 : held_ - many;
  }

  std::uint64_t take32(unsigned many) {
    fill();
    const std::uint64_t bits = pending_ & ((std::uint64_t{1} << many) - 1);
    drop(many);
    return bits;
  }

  const std::uint8_t *at_, *end_;
  std::uint64_t pending_ = 0;
  unsigned held_ = 0;
  bool overrun_ = false;
};

// Bits of a block with this k.
std::uint64_t cost(const std::vector<std::uint64_t>& block, unsigned k) {
  std::uint64_t bits = 0;
  for (const std::uint64_t z : block) {
    const std::uint64_t q = z >> k;
    bits += q < most_zeros ? q + 1 + k : most_zeros + 1 + 64;
  }
  return bits;
}

// The cheapest k, the smallest of equals; the cost has one valley but for escapes, so all are tried up to the largest.
unsigned best_k(const std::vector<std::uint64_t>& block) {
  std::uint64_t every = 0;
  for (const std::uint64_t z : block) every |= z;
  const unsigned most = every == 0 ? 0 : static_cast<unsigned>(std::bit_width(every));
  unsigned best = 0;
  std::uint64_t least = cost(block, 0);
  for (unsigned k = 1; k <= most && k <= largest_k; ++k) {
    const std::uint64_t bits = cost(block, k);
    if (bits < least) best = k, least = bits;
  }
  return best;
}

}  // namespace

template <class T>
std::vector<std::uint8_t> rice_encode(const T* values, std::size_t count, std::int64_t centre) {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> block;
  for (std::size_t start = 0; start < count; start += block_values) {
    const std::size_t many = count - start < block_values ? count - start : block_values;
    block.resize(many);
    for (std::size_t i = 0; i < many; ++i) block[i] = natural(values[start + i], centre);
    const unsigned k = best_k(block);
    bytes.push_back(static_cast<std::uint8_t>(k));
    Writer writer(bytes);
    for (const std::uint64_t z : block) {
      const std::uint64_t q = z >> k;
      if (q < most_zeros) {
        writer.put(std::uint64_t{1} << q, static_cast<unsigned>(q) + 1);
        writer.put(z & ((std::uint64_t{1} << k) - 1), k);
      } else {
        writer.put(std::uint64_t{1} << most_zeros, most_zeros + 1);
        writer.put(z, 64);
      }
    }
    writer.end();
  }
  return bytes;
}

template <class T>
bool rice_decode(const std::uint8_t* bytes, std::size_t size, T* values, std::size_t count, std::int64_t centre) {
  BitReader reader(bytes, size);
  for (std::size_t start = 0; start < count; start += block_values) {
    const std::size_t many = count - start < block_values ? count - start : block_values;
    const auto k = static_cast<unsigned>(reader.take(8));
    if (k > largest_k || reader.overrun()) return false;
    for (std::size_t i = 0; i < many; ++i) {
      const unsigned run = reader.zeros();
      if (run > most_zeros) return false;
      std::uint64_t z;
      if (run < most_zeros) {
        z = std::uint64_t{run} << k | reader.take(k);
      } else {
        z = reader.take(64);
        if (z >> k < most_zeros) return false;
      }
      const std::int64_t value = value_of(z, centre);
      if (value != static_cast<T>(value)) return false;
      values[start + i] = static_cast<T>(value);
    }
    if (!reader.close()) return false;
  }
  return reader.ended();
}

template std::vector<std::uint8_t> rice_encode(const std::int32_t*, std::size_t, std::int64_t);
template std::vector<std::uint8_t> rice_encode(const std::int64_t*, std::size_t, std::int64_t);
template bool rice_decode(const std::uint8_t*, std::size_t, std::int32_t*, std::size_t, std::int64_t);
template bool rice_decode(const std::uint8_t*, std::size_t, std::int64_t*, std::size_t, std::int64_t);

}  // namespace hushsum
