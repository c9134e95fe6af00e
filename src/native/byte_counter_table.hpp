// Counters of a table too large for eight bytes each: one byte per cell, whose carries go to two bytes more, and the
// carries of those, once in 2^24 increments, to a short list per row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hushsum {

// Zeroed memory that the operating system hands out page by page, as pages are first written.
class LazyBytes {
 public:
  explicit LazyBytes(std::size_t size, bool large_pages);
  LazyBytes(const LazyBytes&) = delete;
  LazyBytes(LazyBytes&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  LazyBytes& operator=(const LazyBytes&) = delete;
  ~LazyBytes();
  void* data() const { return data_; }

 private:
  void* data_;
  std::size_t size_;
};

// The value of a cell is low + 2^8 middle + 2^24 high, with high negative where more was subtracted than added. Threads
// may change different rows at once.
class CounterTable {
 public:
  CounterTable(std::size_t rows, std::size_t width);

  std::size_t rows() const { return rows_; }
  std::size_t width() const { return width_; }
  std::uint8_t* low(std::size_t row) { return low_ + row * width_; }

  // Adds step * 2^8 (step is +1 or -1), after the low byte of the cell passed 255 or 0.
  void carry(std::size_t row, std::uint32_t cell, std::int64_t step);

  void read_row(std::size_t row, std::int64_t* values) const;
  void add_row(std::size_t row, const std::int64_t* values);

 private:
  struct High {
    std::uint32_t cell;
    std::int64_t value;
  };
  struct Row {
    bool middle_used = false;
    std::vector<High> high;
  };

  void add_high(Row& row, std::uint32_t cell, std::int64_t value);

  std::size_t rows_, width_;
  LazyBytes low_bytes_, middle_bytes_;
  std::uint8_t* low_;
  std::uint16_t* middle_;
  std::vector<Row> row_;
};

}  // namespace hushsum
