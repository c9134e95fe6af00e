#include "packed_table.hpp"

#include <algorithm>

#include "threads.hpp"

namespace nb = nanobind;

namespace hushsum {

PackedTable::PackedTable(const PackedShape& shape, const std::uint8_t* data, const std::int64_t* exception_cells,
                         const std::int64_t* exception_values, std::size_t exceptions, nb::object check)
    : shape_(shape),
      mask_((std::uint64_t{1} << shape.bits) - 1),
      data_(data),
      exception_cells_(exception_cells, exception_cells + exceptions),
      exception_values_(exception_values, exception_values + exceptions),
      check_(std::move(check)) {
  const std::size_t pages = (data_bytes(shape) + packed_page - 1) / packed_page;
  unchecked_ = check_.is_none() ? 0 : pages;
  checked_ = std::make_unique<std::atomic<std::uint64_t>[]>((unchecked_ + 63) / 64);
}

std::size_t PackedTable::data_bytes(const PackedShape& shape) {
  return ((shape.rows * shape.width * shape.bits + 63) / 64 + 1) * sizeof(std::uint64_t);
}

std::int64_t PackedTable::exception(std::size_t cell, std::uint64_t code) const {
  const auto found =
      std::lower_bound(exception_cells_.begin(), exception_cells_.end(), static_cast<std::int64_t>(cell));
  if (found == exception_cells_.end() || *found != static_cast<std::int64_t>(cell)) return value_of(code);
  return exception_values_[static_cast<std::size_t>(found - exception_cells_.begin())];
}

void PackedTable::check_page(std::size_t page) const {
  const nb::gil_scoped_acquire gil;
  check_(page);
  const std::uint64_t bit = std::uint64_t{1} << (page % 64);
  if ((checked_[page / 64].fetch_or(bit) & bit) == 0) --unchecked_;
}

namespace {

class Packer {
 public:
  Packer(const PackedShape& shape, const std::int64_t* values, std::size_t first_cell, std::uint8_t* data)
      : shape_(shape),
        values_(values),
        first_(first_cell),
        data_(data),
        escape_((std::uint64_t{1} << shape.bits) - 1) {}

  // Cells whose codes share a byte with cells of another range, one at a time.
  void edge(std::size_t from, std::size_t to, Packed& result) const {
    for (std::size_t cell = from; cell < to; ++cell) {
      const std::size_t bit = cell * shape_.bits;
      std::uint64_t word;
      std::memcpy(&word, data_ + (bit >> 3), sizeof word);
      word |= code(cell, result) << (bit & 7);
      std::memcpy(data_ + (bit >> 3), &word, sizeof word);
    }
  }

  // A multiple of 64 cells that starts at a multiple of 64, and so fills whole words.
  void whole(std::size_t from, std::size_t to, Packed& result) const {
    std::uint8_t* out = data_ + from / 8 * shape_.bits;
    std::uint64_t pending = 0;
    unsigned held = 0;
    for (std::size_t cell = from; cell < to; ++cell) {
      const std::uint64_t here = code(cell, result);
      pending |= here << held;
      held += shape_.bits;
      if (held < 64) continue;
      std::memcpy(out, &pending, sizeof pending);
      out += sizeof pending;
      held -= 64;
      pending = held == 0 ? 0 : here >> (shape_.bits - held);
    }
  }

 private:
  std::uint64_t code(std::size_t cell, Packed& result) const {
    const std::int64_t value = values_[cell - first_];
    // Sums wrap, as unsigned numbers may.
    result.total =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(result.total) + static_cast<std::uint64_t>(value));
    const std::int64_t multiple = shape_.unit == 1 ? value : value / shape_.unit;
    const std::uint64_t found = static_cast<std::uint64_t>(multiple) - static_cast<std::uint64_t>(shape_.base);
    if (found < escape_) return found;
    result.exception_cells.push_back(static_cast<std::int64_t>(cell));
    result.exception_values.push_back(value);
    return escape_;
  }

  PackedShape shape_;
  const std::int64_t* values_;
  std::size_t first_;
  std::uint8_t* data_;
  std::uint64_t escape_;
};

}  // namespace

Packed pack_cells(const PackedShape& shape, const std::int64_t* values, std::size_t first_cell, std::size_t count,
                  std::uint8_t* data, std::size_t threads) {
  constexpr std::size_t together = 64;
  const std::size_t end = first_cell + count, begin = std::min(end, (first_cell + together - 1) / together * together);
  const std::size_t groups = (end - begin) / together, last = begin + groups * together;
  const Packer packer(shape, values, first_cell, data);
  Packed before, after;
  packer.edge(first_cell, begin, before);
  const std::size_t many = groups == 0 ? 1 : useful_threads(groups, count, threads);
  std::vector<Packed> parts(many);
  run_parallel(groups, many, [&](Range own, std::size_t t) {
    packer.whole(begin + own.begin * together, begin + own.end * together, parts[t]);
  });
  packer.edge(last, end, after);
  parts.push_back(std::move(after));
  for (const Packed& part : parts) {
    before.total =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(before.total) + static_cast<std::uint64_t>(part.total));
    before.exception_cells.insert(before.exception_cells.end(), part.exception_cells.begin(),
                                  part.exception_cells.end());
    before.exception_values.insert(before.exception_values.end(), part.exception_values.begin(),
                                   part.exception_values.end());
  }
  return before;
}

}  // namespace hushsum
