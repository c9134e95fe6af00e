#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <limits>

#include "arrays.hpp"
#include "batch.hpp"
#include "byte_counter_table.hpp"
#include "dispatch.hpp"
#include "hashers.hpp"
#include "packed_table.hpp"
#include "python_signatures.hpp"
#include "query_reader.hpp"

namespace nb = nanobind;

namespace hushsum {

namespace {

std::size_t thread_count(std::int64_t threads) {
  require(threads >= 1, "threads must be at least 1, got " + std::to_string(threads));
  return static_cast<std::size_t>(threads);
}

void count(const Batch& batch, const WritableArray& table, std::int64_t step, std::int64_t threads) {
  require(step == 1 || step == -1, "step must be +1 or -1, got " + std::to_string(step));
  std::int64_t* counters = checked<std::int64_t>(table, "table", {batch.rows, batch.width});
  const std::size_t many = thread_count(threads);
  const nb::gil_scoped_release released;
  count_batch(batch, counters, step, many);
}

void count_bytes(const Batch& batch, CounterTable& table, std::int64_t step, std::int64_t threads) {
  require(step == 1 || step == -1, "step must be +1 or -1, got " + std::to_string(step));
  require(table.rows() == batch.rows && table.width() == batch.width,
          "table must have the rows and width of the hasher");
  const std::size_t many = thread_count(threads);
  const nb::gil_scoped_release released;
  count_batch(batch, table, step, many);
}

nb::object cells(const Batch& batch, std::int64_t rows) {
  require(rows >= 0 && static_cast<std::size_t>(rows) <= batch.rows,
          "rows must be between 0 and " + std::to_string(batch.rows) + ", got " + std::to_string(rows));
  const std::size_t wanted = static_cast<std::size_t>(rows);
  Result<std::int32_t> result(batch.count, wanted);
  {
    const nb::gil_scoped_release released;
    write_cells(batch, wanted, result.data());
  }
  return result.array();
}

std::size_t table_rows(const Batch& batch, const Array& table) {
  require(table.ndim() == 2 && table.shape(0) >= 1 && table.shape(0) <= batch.rows,
          "table must have between 1 and " + std::to_string(batch.rows) + " rows");
  return table.shape(0);
}

// Calls `use` with the table's counters in their own type, without the interpreter's lock.
template <class Use>
void with_table(const Batch& batch, const Array& table, std::size_t rows, const Use& use) {
  if (table.dtype() == nb::dtype<std::int32_t>()) {
    const auto* counters = checked<std::int32_t>(table, "table", {rows, batch.width});
    const nb::gil_scoped_release released;
    use(counters);
  } else {
    const auto* counters = checked<std::int64_t>(table, "table", {rows, batch.width});
    const nb::gil_scoped_release released;
    use(counters);
  }
}

std::pair<nb::object, nb::object> read(const Batch& batch, const Array& table, std::int64_t block,
                                       std::int64_t threads) {
  require(block >= 1, "block must be at least 1, got " + std::to_string(block));
  const std::size_t rows = table_rows(batch, table), many = thread_count(threads);
  Result<double> mean(batch.count), variance(batch.count);
  with_table(batch, table, rows, [&](const auto* counters) {
    read_batch(batch, counters, rows, static_cast<std::size_t>(block), many, mean.data(), variance.data());
  });
  return {mean.array(), variance.array()};
}

nb::object means(const Batch& batch, const Array& table, double scale, double shift, std::int64_t threads) {
  const std::size_t rows = table_rows(batch, table), many = thread_count(threads);
  Result<double> mean(batch.count);
  with_table(batch, table, rows,
             [&](const auto* counters) { mean_batch(batch, counters, rows, many, scale, shift, mean.data()); });
  return mean.array();
}

std::size_t table_rows(const Batch& batch, const PackedTable& table) {
  const auto& [rows, width, bits, base, unit] = table.shape();
  require(rows <= batch.rows && width == batch.width, "table must have the width of the hasher, and no more rows");
  return rows;
}

std::pair<nb::object, nb::object> read_packed(const Batch& batch, const PackedTable& table, std::int64_t block,
                                              std::int64_t threads) {
  require(block >= 1, "block must be at least 1, got " + std::to_string(block));
  const std::size_t rows = table_rows(batch, table), many = thread_count(threads);
  Result<double> mean(batch.count), variance(batch.count);
  {
    const nb::gil_scoped_release released;
    read_batch(batch, PackedRows{&table, 0}, rows, static_cast<std::size_t>(block), many, mean.data(), variance.data());
  }
  return {mean.array(), variance.array()};
}

nb::object means_packed(const Batch& batch, const PackedTable& table, double scale, double shift,
                        std::int64_t threads) {
  const std::size_t rows = table_rows(batch, table), many = thread_count(threads);
  Result<double> mean(batch.count);
  {
    const nb::gil_scoped_release released;
    mean_batch(batch, PackedRows{&table, 0}, rows, many, scale, shift, mean.data());
  }
  return mean.array();
}

constexpr const char* count_doc =
    "Add step (+1 or -1) to the cell of every record in every row of the int64 table; threads share the rows.";
constexpr const char* cells_doc = "The cell of every record in the first rows, as int32 of shape (records, rows).";
constexpr const char* read_doc =
    "Mean over the rows of an int32 or int64 table of each query's cell, and the estimated variance of that mean\n"
    "from blocks of consecutive rows (NaN with fewer than two blocks).";
constexpr const char* means_doc = "scale times that mean plus shift, for those who need no variance.";

// The methods every hasher shares. Records are one array, or two for sets: `Arrays` is Array once or twice, `types`
// their Python signature and `names` their names.
template <class Hasher, class... Arrays, class... Names>
nb::class_<Hasher> bind_hasher(nb::module_& module, const char* name, const char* doc, const std::string& types,
                               const Names&... names) {
  nb::class_<Hasher> bound(module, name, doc);
  bound
      .def(
          "count",
          [](const Hasher& hasher, const Arrays&... records, const WritableArray& table, std::int64_t step,
             std::int64_t threads) { count(hasher.bind(records...), table, step, threads); },
          names..., nb::arg("table").noconvert(), nb::arg("step"), nb::arg("threads"), count_doc,
          nb::sig(signature("def count(self, " + types + ", table: Array[int64], step: int, threads: int) -> None")))
      .def(
          "count",
          [](const Hasher& hasher, const Arrays&... records, CounterTable& table, std::int64_t step,
             std::int64_t threads) { count_bytes(hasher.bind(records...), table, step, threads); },
          names..., nb::arg("table"), nb::arg("step"), nb::arg("threads"), "The same for a table of bytes.",
          nb::sig(signature("def count(self, " + types + ", table: CounterTable, step: int, threads: int) -> None")))
      .def(
          "cells",
          [](const Hasher& hasher, const Arrays&... records, std::int64_t rows) {
            return cells(hasher.bind(records...), rows);
          },
          names..., nb::arg("rows"), cells_doc,
          nb::sig(signature("def cells(self, " + types + ", rows: int) -> Array[int32]")))
      .def(
          "read",
          [](const Hasher& hasher, const Arrays&... records, const Array& table, std::int64_t block,
             std::int64_t threads) { return read(hasher.bind(records...), table, block, threads); },
          names..., nb::arg("table").noconvert(), nb::arg("block"), nb::arg("threads"), read_doc,
          nb::sig(signature("def read(self, " + types +
                            ", table: Table, block: int, threads: int) -> tuple[Array[float64], Array[float64]]")))
      .def(
          "means",
          [](const Hasher& hasher, const Arrays&... records, const Array& table, double scale, double shift,
             std::int64_t threads) { return means(hasher.bind(records...), table, scale, shift, threads); },
          names..., nb::arg("table").noconvert(), nb::arg("scale"), nb::arg("shift"), nb::arg("threads"), means_doc,
          nb::sig(signature("def means(self, " + types +
                            ", table: Table, scale: float, shift: float, threads: int) -> Array[float64]")))
      .def(
          "read",
          [](const Hasher& hasher, const Arrays&... records, const PackedTable& table, std::int64_t block,
             std::int64_t threads) { return read_packed(hasher.bind(records...), table, block, threads); },
          names..., nb::arg("table"), nb::arg("block"), nb::arg("threads"), "The same for a packed table.",
          nb::sig(
              signature("def read(self, " + types +
                        ", table: PackedTable, block: int, threads: int) -> tuple[Array[float64], Array[float64]]")))
      .def(
          "means",
          [](const Hasher& hasher, const Arrays&... records, const PackedTable& table, double scale, double shift,
             std::int64_t threads) { return means_packed(hasher.bind(records...), table, scale, shift, threads); },
          names..., nb::arg("table"), nb::arg("scale"), nb::arg("shift"), nb::arg("threads"),
          "The same for a packed table.",
          nb::sig(signature("def means(self, " + types +
                            ", table: PackedTable, scale: float, shift: float, threads: int) -> Array[float64]")))
      .def_prop_ro("rows", [](const Hasher& hasher) { return hasher.rows; })
      .def_prop_ro("width", [](const Hasher& hasher) { return hasher.width; });
  return bound;
}

// Some hashers also answer single queries without ceremony.
template <class Hasher>
void bind_reader(nb::module_& module, nb::class_<Hasher>& hasher, const char* name) {
  nb::class_<Reader<Hasher>>(module, name, "A hasher, a table, a scale and a shift, for single queries.")
      .def("__call__", &Reader<Hasher>::operator(), nb::arg("queries").none(),
           "scale times the mean over rows plus shift, or None where queries need checking or converting first.",
           nb::sig(signature("def __call__(self, queries: object) -> Array[float64] | None")));
  hasher.def(
      "reader",
      [](const Hasher& self, nb::object table, double scale, double shift) {
        return Reader<Hasher>(self, std::move(table), scale, shift);
      },
      nb::keep_alive<0, 1>(), nb::arg("table"), nb::arg("scale"), nb::arg("shift"),
      "A reader of this table that answers scale times the mean plus shift.",
      nb::sig(signature(std::string("def reader(self, table: Table | PackedTable, scale: float, shift: float) -> ") +
                        name)));
}

bool all_finite(const Array& values) {
  require(values.dtype() == nb::dtype<float>() && contiguous(values), "values must be a C-contiguous float32 array");
  return simd_loops().all_finite(static_cast<const float*>(values.data()), values.size());
}

void bare_increments(const Array& cells, const WritableArray& table, std::int64_t passes, std::int64_t group) {
  require(group >= 1, "group must be at least 1");
  require(table.ndim() == 2, "table must have 2 axes");
  const std::size_t rows = table.shape(0), width = table.shape(1);
  std::int64_t* counters = checked<std::int64_t>(table, "table", {rows, width});
  const std::uint32_t* given = checked<std::uint32_t>(cells, "cells", {any_size, rows});
  const std::size_t count = cells.shape(0);
  for (std::size_t i = 0; i < count * rows; ++i) require(given[i] < width, "cells must be below the width");
  const nb::gil_scoped_release released;
  const std::size_t together = static_cast<std::size_t>(group);
  for (std::size_t row = 0; row < rows; row += together)
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const std::size_t many = std::min(together, rows - row);
      // By record: add_wide goes through eight rows at a time.
      if (together > 16)
        for (std::size_t j = 0; j < count; ++j)
          simd_loops().add_wide(given + j * rows + row, 1, rows, many, width, 1, counters + row * width);
      else simd_loops().add_wide(given + row, count, rows, many, width, 1, counters + row * width);
    }
}

}  // namespace

void bind_count(nb::module_& module) {
  const std::string fold = "multipliers: Array[uint64], addends: Array[uint64], width: int";
  auto projections = bind_hasher<ProjectionHasher, Array>(
      module, "ProjectionHasher",
      "Floors or signs of dense random projections; cells[r] hashes the p words of row r into the width.\n\n"
      "Each projection is the float32 chain acc = fma(weights[r, i, k], x[k], acc) over k = 0, 1, ... from\n"
      "offsets[r, i], so a record's cells depend on that record alone, bit for bit.",
      "records: Array[float32]", nb::arg("records").noconvert());
  bind_reader(module, projections, "ProjectionReader");
  projections
      .def(nb::init<const Array&, const Array&, const Array&, const Array&, std::int64_t, bool, bool, bool>(),
           nb::arg("weights").noconvert(), nb::arg("offsets").noconvert(), nb::arg("multipliers").noconvert(),
           nb::arg("addends").noconvert(), nb::arg("width"), nb::arg("signs"), nb::arg("fold"),
           nb::arg("scattered") = false,
           nb::sig(signature("def __init__(self, weights: Array[float32], offsets: Array[float32], " + fold +
                             ", signs: bool, fold: bool, scattered: bool = False) -> None")))
      .def_prop_ro("dim", [](const ProjectionHasher& hasher) { return hasher.dim; });
  auto structured = bind_hasher<StructuredHasher, Array>(
      module, "StructuredHasher",
      "Floors or signs of projections from three Hadamard-sign rounds; a block of rows has its own signs.",
      "records: Array[float32]", nb::arg("records").noconvert());
  bind_reader(module, structured, "StructuredReader");
  structured
      .def(
          nb::init<const Array&, std::int64_t, std::int64_t, std::int64_t, float, const Array&, const Array&,
                   const Array&, std::int64_t, bool, bool, std::int64_t, bool>(),
          nb::arg("signs").noconvert(), nb::arg("dim"), nb::arg("rows"), nb::arg("power"), nb::arg("scale"),
          nb::arg("offsets").noconvert(), nb::arg("multipliers").noconvert(), nb::arg("addends").noconvert(),
          nb::arg("width"), nb::arg("sign_mode"), nb::arg("fold"), nb::arg("block_rows"), nb::arg("scattered") = false,
          nb::sig(signature("def __init__(self, signs: Array[int8], dim: int, rows: int, power: int, scale: float, "
                            "offsets: Array[float32], " +
                            fold + ", sign_mode: bool, fold: bool, block_rows: int, scattered: bool = False) -> None")))
      .def_prop_ro("dim", [](const StructuredHasher& hasher) { return hasher.dim; });
  bind_hasher<CodeHasher, Array>(module, "CodeHasher", "Sampled coordinates of int32 code vectors.",
                                 "records: Array[int32]", nb::arg("records").noconvert())
      .def(nb::init<const Array&, const Array&, const Array&, std::int64_t, bool>(), nb::arg("columns").noconvert(),
           nb::arg("multipliers").noconvert(), nb::arg("addends").noconvert(), nb::arg("width"),
           nb::arg("scattered") = false,
           nb::sig(
               signature("def __init__(self, columns: Array[int32], " + fold + ", scattered: bool = False) -> None")));
  auto minima = bind_hasher<MinHasher, Array, Array>(
      module, "MinHasher", "Min-wise hashes of sets of integers; set j is values[indptr[j]:indptr[j + 1]].",
      "values: Array[int64], indptr: Array[int64]", nb::arg("values").noconvert(), nb::arg("indptr").noconvert());
  bind_reader(module, minima, "MinReader");
  minima.def(nb::init<const Array&, const Array&, std::uint64_t, const Array&, const Array&, std::int64_t, bool>(),
             nb::arg("mixers").noconvert(), nb::arg("shifts").noconvert(), nb::arg("salt"),
             nb::arg("multipliers").noconvert(), nb::arg("addends").noconvert(), nb::arg("width"),
             nb::arg("scattered") = false,
             nb::sig(signature("def __init__(self, mixers: Array[uint32], shifts: Array[uint32], salt: int, " + fold +
                               ", scattered: bool = False) -> None")));
  module.def("all_finite", &all_finite, nb::arg("values").noconvert(),
             "Whether a C-contiguous float32 array holds neither NaN nor infinity.",
             nb::sig(signature("def all_finite(values: Array[float32]) -> bool")));
  module.def("bare_increments", &bare_increments, nb::arg("cells").noconvert(), nb::arg("table").noconvert(),
             nb::arg("passes"), nb::arg("group") = 16,
             "A yardstick for benchmarks: add 1 to table[row, cells[j, row]] for every j and row, `passes` times,\n"
             "from cells that were computed before. A build does at least these increments. `group` rows are\n"
             "counted together; all rows, and more than 16, means record by record.",
             nb::sig(signature("def bare_increments(cells: Array[uint32], table: Array[int64], passes: int, "
                               "group: int = 16) -> None")));
}

}  // namespace hushsum
