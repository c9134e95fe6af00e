// Large tables for Python: counters of bytes, and packed noisy cells.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "arrays.hpp"
#include "byte_counter_table.hpp"
#include "packed_table.hpp"
#include "python_signatures.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace hushsum {

namespace {

constexpr std::size_t most_cells = std::size_t{1} << 40;

std::size_t axis_of(const char* name, std::int64_t size) {
  require(size >= 1 && size <= std::numeric_limits<std::int32_t>::max(),
          std::string(name) + " must be from 1 to 2^31 - 1, got " + std::to_string(size));
  return static_cast<std::size_t>(size);
}

std::size_t parts(std::size_t rows, std::size_t cells, std::int64_t threads) {
  require(threads >= 1, "threads must be at least 1, got " + std::to_string(threads));
  return useful_threads(rows, cells, static_cast<std::size_t>(threads));
}

// The rows of an array [rows][width] that begins at row `first` of the table.
std::size_t rows_within(const CounterTable& table, std::int64_t first, std::size_t many) {
  require(first >= 0 && static_cast<std::size_t>(first) + many <= table.rows(), "rows must be rows of the table");
  return static_cast<std::size_t>(first);
}

void make_counters(CounterTable* place, std::int64_t rows, std::int64_t width) {
  const std::size_t high = axis_of("rows", rows), wide = axis_of("width", width);
  require(high * wide <= most_cells, "rows times width must be at most 2^40");
  new (place) CounterTable(high, wide);
}

void read_rows(const CounterTable& table, std::int64_t first, const WritableArray& into, std::int64_t threads) {
  std::int64_t* values = checked<std::int64_t>(into, "values", {any_size, table.width()});
  const std::size_t many = into.shape(0), start = rows_within(table, first, many);
  const std::size_t split = parts(many, many * table.width(), threads);
  const nb::gil_scoped_release released;
  run_parallel(many, split, [&](Range rows, std::size_t) {
    for (std::size_t r = rows.begin; r < rows.end; ++r) table.read_row(start + r, values + r * table.width());
  });
}

void add_rows(CounterTable& table, std::int64_t first, const Array& from, std::int64_t threads) {
  const std::int64_t* values = checked<std::int64_t>(from, "values", {any_size, table.width()});
  const std::size_t many = from.shape(0), start = rows_within(table, first, many);
  const std::size_t split = parts(many, many * table.width(), threads);
  const nb::gil_scoped_release released;
  run_parallel(many, split, [&](Range rows, std::size_t) {
    for (std::size_t r = rows.begin; r < rows.end; ++r) table.add_row(start + r, values + r * table.width());
  });
}

PackedShape packed_shape(std::int64_t rows, std::int64_t width, std::int64_t bits, std::int64_t base,
                         std::int64_t unit) {
  const PackedShape shape{.rows = axis_of("rows", rows),
                          .width = axis_of("width", width),
                          .bits = static_cast<unsigned>(bits),
                          .base = base,
                          .unit = unit};
  require(shape.rows * shape.width <= most_cells, "rows times width must be at most 2^40");
  require(bits >= 1 && bits <= most_packed_bits, "bits must be from 1 to " + std::to_string(most_packed_bits));
  // Every value of a code fits 64 bits.
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2 / std::max<std::int64_t>(unit, 1);
  require(unit >= 1 && base >= -most && base <= most - (std::int64_t{1} << bits),
          "base and unit must give values of 64 bits");
  return shape;
}

void make_packed(PackedTable* place, const Array& data, std::int64_t rows, std::int64_t width, std::int64_t bits,
                 std::int64_t base, std::int64_t unit, const Array& exception_cells, const Array& exception_values,
                 nb::object check) {
  const PackedShape shape = packed_shape(rows, width, bits, base, unit);
  const auto* bytes = checked<std::uint8_t>(data, "data", {PackedTable::data_bytes(shape)});
  const std::size_t many = exception_cells.ndim() == 1 ? exception_cells.shape(0) : 0;
  const auto* at = checked<std::int64_t>(exception_cells, "exception_cells", {many});
  const auto* values = checked<std::int64_t>(exception_values, "exception_values", {many});
  const auto cells = static_cast<std::int64_t>(shape.rows * shape.width);
  for (std::size_t i = 0; i < many; ++i)
    require(at[i] >= 0 && at[i] < cells && (i == 0 || at[i - 1] < at[i]), "exception_cells must rise within the table");
  new (place) PackedTable(shape, bytes, at, values, many, std::move(check));
}

void read_cells(const PackedTable& table, std::int64_t first, const WritableArray& into, std::int64_t threads) {
  std::int64_t* values = checked<std::int64_t>(into, "values", {any_size});
  const std::size_t many = into.shape(0), cells = table.shape().rows * table.shape().width;
  require(first >= 0 && static_cast<std::size_t>(first) <= cells && many <= cells - static_cast<std::size_t>(first),
          "cells must be cells of the table");
  const std::size_t split = parts(many, many, threads), start = static_cast<std::size_t>(first);
  const nb::gil_scoped_release released;
  run_parallel(many, split, [&](Range own, std::size_t) {
    for (std::size_t i = own.begin; i < own.end; ++i) values[i] = table.at(start + i);
  });
}

nb::object take(const PackedTable& table, const Array& cells) {
  const auto& [rows, width, bits, base, unit] = table.shape();
  const std::int32_t* given = checked<std::int32_t>(cells, "cells", {any_size, rows});
  const std::size_t count = cells.shape(0);
  for (std::size_t i = 0; i < count * rows; ++i)
    require(given[i] >= 0 && static_cast<std::size_t>(given[i]) < width, "cells must be below the width");
  Result<std::int64_t> values(count, rows);
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t row = 0; row < rows; ++row)
      values.data()[j * rows + row] = table.at(row * width + static_cast<std::size_t>(given[j * rows + row]));
  return values.array();
}

nb::object as_array(const std::vector<std::int64_t>& values) {
  Result<std::int64_t> result(values.size());
  std::copy(values.begin(), values.end(), result.data());
  return result.array();
}

nb::tuple pack(const Array& values, std::int64_t first, const WritableArray& data, std::int64_t rows,
               std::int64_t width, std::int64_t bits, std::int64_t base, std::int64_t unit, std::int64_t threads) {
  const PackedShape shape = packed_shape(rows, width, bits, base, unit);
  const auto* from = checked<std::int64_t>(values, "values", {any_size});
  auto* bytes = checked<std::uint8_t>(data, "data", {PackedTable::data_bytes(shape)});
  const std::size_t many = values.shape(0), cells = shape.rows * shape.width;
  require(first >= 0 && static_cast<std::size_t>(first) <= cells && many <= cells - static_cast<std::size_t>(first),
          "cells must be cells of the table");
  require(threads >= 1, "threads must be at least 1, got " + std::to_string(threads));
  Packed packed;
  {
    const nb::gil_scoped_release released;
    packed = pack_cells(shape, from, static_cast<std::size_t>(first), many, bytes, static_cast<std::size_t>(threads));
  }
  return nb::make_tuple(as_array(packed.exception_cells), as_array(packed.exception_values), packed.total);
}

// self += other, in place.
nb::object merge(nb::handle_t<CounterTable> self, const CounterTable& other) {
  auto& table = nb::cast<CounterTable&>(self);
  require(table.rows() == other.rows() && table.width() == other.width(), "tables must have one shape");
  {
    const nb::gil_scoped_release released;
    std::vector<std::int64_t> values(other.width());
    for (std::size_t row = 0; row < other.rows(); ++row) {
      other.read_row(row, values.data());
      table.add_row(row, values.data());
    }
  }
  return nb::borrow(self);
}

}  // namespace

void bind_tables(nb::module_& module) {
  nb::class_<CounterTable>(module, "CounterTable",
                           "Integer counters, zero at first: one byte per cell, and more for cells beyond 255.")
      .def("__init__", &make_counters, nb::arg("rows"), nb::arg("width"),
           nb::sig(signature("def __init__(self, rows: int, width: int) -> None")))
      .def_prop_ro("shape", [](const CounterTable& table) { return std::make_pair(table.rows(), table.width()); })
      .def("read_rows", &read_rows, nb::arg("first"), nb::arg("values").noconvert(), nb::arg("threads"),
           "Fill values, int64 of shape (rows, width), with the rows from `first` on.",
           nb::sig(signature("def read_rows(self, first: int, values: Array[int64], threads: int) -> None")))
      .def("add_rows", &add_rows, nb::arg("first"), nb::arg("values").noconvert(), nb::arg("threads"),
           "Add values, int64 of shape (rows, width), to the rows from `first` on.",
           nb::sig(signature("def add_rows(self, first: int, values: Array[int64], threads: int) -> None")))
      .def("__iadd__", &merge, nb::arg("other"), "Add another table's counters to these.",
           nb::sig(signature("def __iadd__(self, other: CounterTable) -> CounterTable")));
  nb::class_<PackedTable>(
      module, "PackedTable",
      "Integers of a fixed number of bits, read one by one: (base + code) * unit, and a sorted list\n"
      "of cells with other values. `check` is called with the number of each page of data before\n"
      "the page is first used.")
      .def("__init__", &make_packed, nb::keep_alive<1, 2>(), nb::arg("data").noconvert(), nb::arg("rows"),
           nb::arg("width"), nb::arg("bits"), nb::arg("base"), nb::arg("unit"), nb::arg("exception_cells").noconvert(),
           nb::arg("exception_values").noconvert(), nb::arg("check").none() = nb::none(),
           nb::sig(signature("def __init__(self, data: Array[uint8], rows: int, width: int, bits: int, base: int, "
                             "unit: int, exception_cells: Array[int64], exception_values: Array[int64], check: "
                             "collections.abc.Callable[[int], None] | None = None) -> None")))
      .def("read_cells", &read_cells, nb::arg("first"), nb::arg("values").noconvert(), nb::arg("threads"),
           "Fill values with the cells from number `first` on, row after row.",
           nb::sig(signature("def read_cells(self, first: int, values: Array[int64], threads: int) -> None")))
      .def("take", &take, nb::arg("cells").noconvert(),
           "The value of cell cells[j, row] of every row, int64 of shape (records, rows).",
           nb::sig(signature("def take(self, cells: Array[int32]) -> Array[int64]")));
  module.attr("PACKED_PAGE") = packed_page;
  module.attr("MOST_PACKED_BITS") = most_packed_bits;
  module.def("pack_cells", &pack, nb::arg("values").noconvert(), nb::arg("first"), nb::arg("data").noconvert(),
             nb::arg("rows"), nb::arg("width"), nb::arg("bits"), nb::arg("base"), nb::arg("unit"), nb::arg("threads"),
             "Write the codes of values, cells from number `first` on, into the zeroed data of a PackedTable; returns\n"
             "the cells and values of the exceptions, and the sum of all values.",
             nb::sig(signature("def pack_cells(values: Array[int64], first: int, data: Array[uint8], rows: int, "
                               "width: int, bits: int, base: int, unit: int, threads: int) -> "
                               "tuple[Array[int64], Array[int64], int]")));
}

}  // namespace hushsum
