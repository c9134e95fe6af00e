#include <nanobind/nanobind.h>

#include "arrays.hpp"
#include "fourier_features.hpp"
#include "python_signatures.hpp"
#include "structured_fourier_features.hpp"

namespace nb = nanobind;

namespace hushsum {

namespace {

std::size_t thread_count(std::int64_t threads) {
  require(threads >= 1, "threads must be at least 1, got " + std::to_string(threads));
  return static_cast<std::size_t>(threads);
}

template <class Map>
const float* rows_of(const Map& map, const Array& records) {
  return checked<float>(records, "records", {any_size, map.dim});
}

template <class Map>
std::size_t rows_read(const Map& map, const Array& table) {
  require(table.ndim() == 2 && table.shape(0) >= 1 && table.shape(0) <= map.rows,
          "table must have between 1 and " + std::to_string(map.rows) + " rows");
  return table.shape(0);
}

template <class Map>
void add(const Map& map, const Array& records, const WritableArray& table, std::int64_t step, std::int64_t threads) {
  require(step == 1 || step == -1, "step must be +1 or -1, got " + std::to_string(step));
  const float* given = rows_of(map, records);
  auto* sums = checked<std::int64_t>(table, "table", {map.rows, 2});
  const std::size_t count = records.shape(0), many = thread_count(threads);
  const nb::gil_scoped_release released;
  map.add(given, count, sums, step, many);
}

template <class Map>
nb::object integers(const Map& map, const Array& records) {
  const float* given = rows_of(map, records);
  const std::size_t count = records.shape(0);
  Result<std::int32_t> result(count, map.rows, std::size_t{2});
  {
    const nb::gil_scoped_release released;
    map.write_integers(given, count, result.data());
  }
  return result.array();
}

nb::object waves(const FeatureMap& map, const Array& records) {
  const float* given = rows_of(map, records);
  const std::size_t count = records.shape(0);
  Result<float> result(count, map.rows, std::size_t{2});
  {
    const nb::gil_scoped_release released;
    map.write_waves(given, count, result.data());
  }
  return result.array();
}

template <class Map>
nb::object read(const Map& map, const Array& records, const Array& table, double scale, std::int64_t threads) {
  const float* given = rows_of(map, records);
  const std::size_t count = records.shape(0), many = thread_count(threads);
  const std::size_t rows = rows_read(map, table);
  Result<double> answers(count);
  if (table.dtype() == nb::dtype<std::int32_t>()) {
    const auto* sums = checked<std::int32_t>(table, "table", {rows, 2});
    const nb::gil_scoped_release released;
    map.read(given, count, sums, rows, scale, many, answers.data());
  } else {
    const auto* sums = checked<std::int64_t>(table, "table", {rows, 2});
    const nb::gil_scoped_release released;
    map.read(given, count, sums, rows, scale, many, answers.data());
  }
  return answers.array();
}

template <class Map>
nb::object spread(const Map& map, const Array& records, const Array& table, std::int64_t block, double scale,
                  std::int64_t threads) {
  const float* given = rows_of(map, records);
  const std::size_t count = records.shape(0), many = thread_count(threads), rows = rows_read(map, table);
  require(block >= 1, "block must be at least 1, got " + std::to_string(block));
  const auto size = static_cast<std::size_t>(block);
  Result<double> mean(count), variance(count);
  if (table.dtype() == nb::dtype<std::int32_t>()) {
    const auto* sums = checked<std::int32_t>(table, "table", {rows, 2});
    const nb::gil_scoped_release released;
    map.spread(given, count, sums, rows, size, scale, many, mean.data(), variance.data());
  } else {
    const auto* sums = checked<std::int64_t>(table, "table", {rows, 2});
    const nb::gil_scoped_release released;
    map.spread(given, count, sums, rows, size, scale, many, mean.data(), variance.data());
  }
  return nb::make_tuple(mean.array(), variance.array());
}

void orthogonal(const WritableArray& rows) {
  require(rows.ndim() == 2, "rows must have 2 axes");
  const std::size_t count = rows.shape(0), dim = rows.shape(1);
  double* given = checked<double>(rows, "rows", {count, dim});
  const nb::gil_scoped_release released;
  orthogonalise(given, count, dim);
}

}  // namespace

void bind_features(nb::module_& module) {
  nb::class_<FeatureMap>(
      module, "FeatureMap",
      "Cosines and sines of projections, as integers; a record's pair in a row is no longer than WAVE_LENGTH.\n\nThe "
      "phase of row r is the float32 chain acc = fma(frequencies[r, k], x[k], acc) over k = 0, 1, ... from 0,\nin "
      "turns; WAVE_AMPLITUDE times its cosine and sine, rounded, are the record's two integers.")
      .def(nb::init<const Array&>(), nb::arg("frequencies").noconvert(),
           nb::sig(signature("def __init__(self, frequencies: Array[float32]) -> None")))
      .def("add", &add<FeatureMap>, nb::arg("records").noconvert(), nb::arg("table").noconvert(), nb::arg("step"),
           nb::arg("threads"),
           "Add step (+1 or -1) times every record's integers to the int64 table (rows, 2); threads share the rows.",
           nb::sig(signature(
               "def add(self, records: Array[float32], table: Array[int64], step: int, threads: int) -> None")))
      .def("integers", &integers<FeatureMap>, nb::arg("records").noconvert(),
           "The integers of every record, as int32 of shape (records, rows, 2).",
           nb::sig(signature("def integers(self, records: Array[float32]) -> Array[int32]")))
      .def("waves", &waves, nb::arg("records").noconvert(),
           "Cosine and sine of every record's phases, unrounded, as float32 of shape (records, rows, 2).",
           nb::sig(signature("def waves(self, records: Array[float32]) -> Array[float32]")))
      .def("read", &read<FeatureMap>, nb::arg("records").noconvert(), nb::arg("table").noconvert(), nb::arg("scale"),
           nb::arg("threads"),
           "scale times the sum over an int32 or int64 table's rows of cells times waves, for every query.",
           nb::sig(signature(
               "def read(self, records: Array[float32], table: Table, scale: float, threads: int) -> Array[float64]")))
      .def(
          "spread", &spread<FeatureMap>, nb::arg("records").noconvert(), nb::arg("table").noconvert(), nb::arg("block"),
          nb::arg("scale"), nb::arg("threads"),
          "The mean over rows of scale times cells times waves, for every query, and the variance of that mean as\nthe "
          "spread over blocks of `block` rows shows it; NaN for a single block.",
          nb::sig(signature("def spread(self, records: Array[float32], table: Table, block: int, scale: float, "
                            "threads: int) -> tuple[Array[float64], Array[float64]]")))
      .def_prop_ro("rows", [](const FeatureMap& map) { return map.rows; })
      .def_prop_ro("dim", [](const FeatureMap& map) { return map.dim; });
  nb::class_<StructuredFeatureMap>(
      module, "StructuredFeatureMap",
      "The same for structured projections: with y = H S3 H S2 H S1 x, of x padded with zeros and Hadamard matrices H\n"
      "that add from the widest distance to the narrowest, the phase of row r of a block is y[r] * scales[r].")
      .def(
          "__init__",
          [](StructuredFeatureMap* made, const Array& signs, const Array& scales, std::int64_t dim) {
            require(dim >= 1, "dim must be at least 1, got " + std::to_string(dim));
            new (made) StructuredFeatureMap(signs, scales, static_cast<std::size_t>(dim));
          },
          nb::arg("signs").noconvert(), nb::arg("scales").noconvert(), nb::arg("dim"),
          nb::sig(signature("def __init__(self, signs: Array[int8], scales: Array[float32], dim: int) -> None")))
      .def("add", &add<StructuredFeatureMap>, nb::arg("records").noconvert(), nb::arg("table").noconvert(),
           nb::arg("step"), nb::arg("threads"), "As FeatureMap.add; threads share the blocks.",
           nb::sig(signature(
               "def add(self, records: Array[float32], table: Array[int64], step: int, threads: int) -> None")))
      .def("integers", &integers<StructuredFeatureMap>, nb::arg("records").noconvert(), "As FeatureMap.integers.",
           nb::sig(signature("def integers(self, records: Array[float32]) -> Array[int32]")))
      .def("read", &read<StructuredFeatureMap>, nb::arg("records").noconvert(), nb::arg("table").noconvert(),
           nb::arg("scale"), nb::arg("threads"), "As FeatureMap.read.",
           nb::sig(signature(
               "def read(self, records: Array[float32], table: Table, scale: float, threads: int) -> Array[float64]")))
      .def(
          "spread",
          [](const StructuredFeatureMap& map, const Array& records, const Array& table, std::int64_t block,
             double scale, std::int64_t threads) {
            require(block == 1 || block == static_cast<std::int64_t>(map.size),
                    "block must be 1 or " + std::to_string(map.size) + ", got " + std::to_string(block));
            return spread(map, records, table, block, scale, threads);
          },
          nb::arg("records").noconvert(), nb::arg("table").noconvert(), nb::arg("block"), nb::arg("scale"),
          nb::arg("threads"), "As FeatureMap.spread, for blocks of one row or of the size of the matrix.",
          nb::sig(signature("def spread(self, records: Array[float32], table: Table, block: int, scale: float, "
                            "threads: int) -> tuple[Array[float64], Array[float64]]")))
      .def_prop_ro("rows", [](const StructuredFeatureMap& map) { return map.rows; })
      .def_prop_ro("dim", [](const StructuredFeatureMap& map) { return map.dim; });
  module.attr("WAVE_AMPLITUDE") = wave_amplitude;
  module.attr("WAVE_LENGTH") = wave_length;
  module.def("orthogonalise", &orthogonal, nb::arg("rows").noconvert(),
             "Make every float64 row orthogonal to those before it in its block of as many rows as there are columns,\n"
             "in place, keeping its length; the same bits on every machine.",
             nb::sig(signature("def orthogonalise(rows: Array[float64]) -> None")));
}

}  // namespace hushsum
