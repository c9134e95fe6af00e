#include "byte_counter_table.hpp"

#include <sys/mman.h>

#include <new>
#include <stdexcept>

namespace hushsum {

LazyBytes::LazyBytes(std::size_t size, bool large_pages) : data_(nullptr), size_(size) {
  if (size == 0) return;
  data_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  // A row is visited at random: fewer pages mean fewer misses of the address translation. Only advice.
  if (large_pages) madvise(data_, size_, MADV_HUGEPAGE);
#else
  (void)large_pages;
#endif
}

LazyBytes::~LazyBytes() {
  if (data_ != nullptr) munmap(data_, size_);
}

CounterTable::CounterTable(std::size_t rows, std::size_t width)
    : rows_(rows),
      width_(width),
      low_bytes_(rows * width, true),
      middle_bytes_(rows * width * sizeof(std::uint16_t), false),
      low_(static_cast<std::uint8_t*>(low_bytes_.data())),
      middle_(static_cast<std::uint16_t*>(middle_bytes_.data())),
      row_(rows) {}

void CounterTable::carry(std::size_t row, std::uint32_t cell, std::int64_t step) {
  std::uint16_t& middle = middle_[row * width_ + cell];
  const std::uint16_t before = middle;
  middle = static_cast<std::uint16_t>(before + step);
  row_[row].middle_used = true;
  if (before == (step > 0 ? 0xffff : 0)) add_high(row_[row], cell, step);
}

void CounterTable::add_high(Row& row, std::uint32_t cell, std::int64_t value) {
  for (High& each : row.high) {
    if (each.cell != cell) continue;
    each.value += value;
    return;
  }
  row.high.push_back({.cell = cell, .value = value});
}

void CounterTable::read_row(std::size_t row, std::int64_t* values) const {
  const std::uint8_t* low = low_ + row * width_;
  for (std::size_t c = 0; c < width_; ++c) values[c] = low[c];
  if (!row_[row].middle_used) return;
  const std::uint16_t* middle = middle_ + row * width_;
  for (std::size_t c = 0; c < width_; ++c) values[c] += std::int64_t{middle[c]} << 8;
  for (const High& each : row_[row].high)
    values[each.cell] = static_cast<std::int64_t>(static_cast<std::uint64_t>(values[each.cell]) +
                                                  (static_cast<std::uint64_t>(each.value) << 24));
}

void CounterTable::add_row(std::size_t row, const std::int64_t* values) {
  std::uint8_t* low = low_ + row * width_;
  std::uint16_t* middle = middle_ + row * width_;
  for (std::size_t c = 0; c < width_; ++c) {
    // Arithmetic shifts: the parts below are natural numbers, the last has the sign.
    const std::int64_t first = low[c] + (values[c] & 0xff);
    low[c] = static_cast<std::uint8_t>(first);
    const std::int64_t rest = (values[c] >> 8) + (first >> 8);
    if (rest == 0) continue;
    const std::int64_t second = middle[c] + (rest & 0xffff);
    middle[c] = static_cast<std::uint16_t>(second);
    row_[row].middle_used = true;
    const std::int64_t third = (rest >> 16) + (second >> 16);
    if (third != 0) add_high(row_[row], static_cast<std::uint32_t>(c), third);
  }
}

}  // namespace hushsum
