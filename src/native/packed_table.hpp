// A noisy table whose cells take a fixed number of bits, so that any cell is read without unpacking the others.
//
// Cell c holds the code in bits [c * bits, (c + 1) * bits) of little-endian bytes; its value is (base + code) * unit,
// but for the cells of a sorted list of exceptions, whose code is all ones. The bytes may be those of a mapped file:
// every page of them is checked before it is used for the first time, by a function of its number.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace hushsum {

constexpr std::size_t packed_page = 4096;
constexpr unsigned most_packed_bits = 56;  // one load of 64 bits holds a code that starts anywhere in a byte

struct PackedShape {
  std::size_t rows, width;
  unsigned bits;
  std::int64_t base, unit;
};

class PackedTable {
 public:
  // `check` is None, or called with the number of a page, without which no cell of that page is read; it raises what
  // the reader is to raise.
  PackedTable(const PackedShape& shape, const std::uint8_t* data, const std::int64_t* exception_cells,
              const std::int64_t* exception_values, std::size_t exceptions, nanobind::object check);

  // How many bytes the codes of a table take: whole words, and one more so that every load stays inside.
  static std::size_t data_bytes(const PackedShape& shape);

  const PackedShape& shape() const { return shape_; }

  // Checks the pages of a cell if nobody has, and asks the processor for its bytes; `read` may follow.
  void prepare(std::size_t cell) const {
    const std::size_t bit = cell * shape_.bits;
    __builtin_prefetch(data_ + (bit >> 3));
    if (unchecked_.load(std::memory_order_relaxed) != 0) require_checked(bit >> 3, (bit + shape_.bits - 1) >> 3);
  }

  // The value of a cell that was prepared: no branch but for exceptions, so that many loads are under way at once.
  std::int64_t read(std::size_t cell) const {
    const std::size_t bit = cell * shape_.bits;
    std::uint64_t word;
    std::memcpy(&word, data_ + (bit >> 3), sizeof word);
    const std::uint64_t code = word >> (bit & 7) & mask_;
    if (code == mask_) return exception(cell, code);
    return value_of(code);
  }

  std::int64_t at(std::size_t cell) const {
    prepare(cell);
    return read(cell);
  }

 private:
  std::int64_t value_of(std::uint64_t code) const {
    return (shape_.base + static_cast<std::int64_t>(code)) * shape_.unit;
  }
  std::int64_t exception(std::size_t cell, std::uint64_t code) const;

  void require_checked(std::size_t first_byte, std::size_t last_byte) const {
    const std::size_t first = first_byte / packed_page, last = last_byte / packed_page;
    if (!is_checked(first)) check_page(first);
    if (last != first && !is_checked(last)) check_page(last);
  }
  bool is_checked(std::size_t page) const {
    return (checked_[page / 64].load(std::memory_order_relaxed) >> (page % 64) & 1) != 0;
  }
  void check_page(std::size_t page) const;

  PackedShape shape_;
  std::uint64_t mask_;
  const std::uint8_t* data_;
  std::vector<std::int64_t> exception_cells_, exception_values_;
  nanobind::object check_;
  mutable std::atomic<std::size_t> unchecked_;             // pages that nobody has checked yet
  std::unique_ptr<std::atomic<std::uint64_t>[]> checked_;  // a bit per page
};

// The rows of a table from one on, for the loops that take a pointer to counters where the table is an array.
struct PackedRows {
  const PackedTable* table;
  std::size_t first_cell;
  PackedRows operator+(std::size_t cells) const { return {table, first_cell + cells}; }
};

struct Packed {
  std::vector<std::int64_t> exception_cells, exception_values;
  std::int64_t total = 0;
};

// Writes the codes of `count` values, cells first_cell, first_cell + 1, ..., into zeroed or partly written data. Values
// are multiples of the unit.
Packed pack_cells(const PackedShape& shape, const std::int64_t* values, std::size_t first_cell, std::size_t count,
                  std::uint8_t* data, std::size_t threads);

}  // namespace hushsum
