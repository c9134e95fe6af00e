// A hasher together with the records it is asked about: what the loops over panels and records need to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace hushsum {

class CounterTable;

// Zeroed storage on a cache line, for what vectors load and store.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t size)
      : size_(size), data_(static_cast<T*>(::operator new(size * sizeof(T) + 64, std::align_val_t{64}))) {
    for (std::size_t i = 0; i < size; ++i) data_[i] = T{};
  }
  Buffer(Buffer&& other) noexcept : size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { ::operator delete(data_, std::align_val_t{64}); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }

 private:
  std::size_t size_;
  T* data_;
};

class Batch {
 public:
  virtual ~Batch() = default;

  std::size_t count = 0;          // records
  std::size_t rows = 0;           // of the sketch
  std::size_t width = 0;          // cells of a row
  std::size_t panel_rows = 0;     // rows hashed together; the last panel may be partly padding
  std::size_t record_bytes = 0;   // about how much of the cache a record takes
  std::size_t scratch_bytes = 0;  // working space for cells()

  std::size_t panels() const { return (rows + panel_rows - 1) / panel_rows; }

  // cells[record * stride + row], for whole panels: rows beyond the last hold harmless padding.
  virtual void cells(std::size_t first, std::size_t many, std::size_t first_panel, std::size_t many_panels,
                     std::uint32_t* cells, std::size_t stride, void* scratch) const = 0;

  // Adds a panel's cells to 16-bit counters [lane][width] in one go; false if the family has no such loop.
  virtual bool count_narrow(std::size_t, std::size_t, std::size_t, std::uint16_t*, void*) const { return false; }

  // Adds the counters of a whole panel, table[lane][width], to one sum per record; false as above.
  virtual bool total(std::size_t, std::size_t, std::size_t, const std::int32_t*, std::int64_t*, void*) const {
    return false;
  }
  virtual bool total(std::size_t, std::size_t, std::size_t, const std::int64_t*, std::int64_t*, void*) const {
    return false;
  }
};

// counters[row][cell] += step for every record and row; threads own rows.
void count_batch(const Batch& batch, std::int64_t* counters, std::int64_t step, std::size_t threads);

// The same for a table of bytes, whatever its width.
void count_batch(const Batch& batch, CounterTable& table, std::int64_t step, std::size_t threads);

// cells[record][row] for the first `rows` rows.
void write_cells(const Batch& batch, std::size_t rows, std::int32_t* cells);

// The mean over the table's rows of each record's counter, and the estimated variance of that mean. A table is a
// pointer to int32 or int64 counters, or PackedRows.
template <class Table>
void read_batch(const Batch& batch, Table table, std::size_t rows, std::size_t block, std::size_t threads, double* mean,
                double* variance);

// scale times the mean plus shift, for those who need no variance.
template <class Table>
void mean_batch(const Batch& batch, Table table, std::size_t rows, std::size_t threads, double scale, double shift,
                double* mean);

}  // namespace hushsum
