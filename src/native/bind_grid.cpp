#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <optional>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "grid.hpp"
#include "python_signatures.hpp"

namespace nb = nanobind;

namespace hushsum {

namespace {

constexpr std::size_t most_nodes = std::size_t{1} << 40;

using Axis = std::tuple<std::int64_t, double, std::optional<Array>>;
using Window = std::tuple<std::int64_t, Array>;

std::size_t thread_count(std::int64_t threads) {
  require(threads >= 1, "threads must be at least 1, got " + std::to_string(threads));
  return static_cast<std::size_t>(threads);
}

void require_columns(std::size_t columns) {
  require(columns >= 1 && columns <= most_grid_columns, "a grid must have 1 to 4 columns");
}

void count(const Array& records, const WritableArray& table, const std::vector<Axis>& axes, std::int64_t part,
           std::int64_t whole, std::int64_t step, std::int64_t threads) {
  require_columns(axes.size());
  require(step == 1 || step == -1, "step must be +1 or -1, got " + std::to_string(step));
  require(part >= 1 && part <= std::int64_t{1} << 20 && whole >= 1 && whole <= std::int64_t{1} << 20,
          "part and whole must be from 1 to 2^20");
  GridCount grid{.axes = {}, .whole = whole, .factor = 1, .shift = 0};
  std::size_t nodes = 1;
  std::int64_t sum = 1;
  for (const auto& [cells, spacing, parts] : axes) {
    require(cells >= 1 && static_cast<std::size_t>(cells) < most_nodes && spacing > 0.0,
            "cells and spacing must be positive");
    GridAxis axis{
        .cells = cells, .nodes = cells + 1, .spacing = spacing, .around = 1, .place_bits = 0, .parts = nullptr};
    if (parts) {
      axis.parts = checked<std::int32_t>(*parts, "parts", {any_size, any_size});
      const std::size_t places = parts->shape(0);
      axis.place_bits = static_cast<unsigned>(std::bit_width(places)) - 1;
      axis.around = parts->shape(1);
      require(std::has_single_bit(places) && places <= std::size_t{1} << 20 && axis.around >= 1 &&
                  axis.around <= most_spline_nodes,
              "parts must be of 1 to 6 nodes and 2^k places");
      for (std::size_t i = 0; i < places; ++i) {
        std::int64_t total = 0;
        for (std::size_t j = 0; j < axis.around; ++j) total += axis.parts[i * axis.around + j];
        require(total == part, "the parts of a place must sum to the declared number");
      }
      axis.nodes = cells + static_cast<std::int64_t>(axis.around) - 1;
      require(sum <= (std::int64_t{1} << 52) / part, "products of parts must be at most 2^52");
      sum *= part;
    }
    nodes *= static_cast<std::size_t>(axis.nodes);
    require(nodes <= most_nodes, "a grid must have at most 2^40 nodes");
    grid.axes.push_back(axis);
  }
  for (; sum < whole; sum *= 2) grid.factor *= 2;
  for (; sum > whole; sum /= 2) ++grid.shift;
  require(sum == whole, "whole and products of parts must differ by a power of 2");
  const float* given = checked<float>(records, "records", {any_size, axes.size()});
  std::int64_t* counters = checked<std::int64_t>(table, "table", {nodes});
  const std::size_t many = thread_count(threads);
  const nb::gil_scoped_release released;
  count_on_grid(grid, given, records.shape(0), step, counters, many);
}

std::vector<GridWindow> checked_windows(const std::vector<Window>& windows) {
  require_columns(windows.size());
  std::vector<GridWindow> found;
  std::size_t cells = 1;
  for (const auto& [nodes, rows] : windows) {
    const double* values = checked<double>(rows, "coefficients", {any_size, any_size});
    require(rows.shape(0) >= 2 && rows.shape(1) >= 2 && rows.shape(1) % 2 == 0,
            "coefficients must be of at least 2 places and an even number of nodes");
    require(nodes >= 1 && static_cast<std::size_t>(nodes) <= most_nodes, "nodes must be positive");
    cells *= static_cast<std::size_t>(nodes);
    require(cells <= most_nodes, "a grid must have at most 2^40 nodes");
    found.push_back({.nodes = nodes, .reach = rows.shape(1) / 2, .steps = rows.shape(0) - 1, .rows = values});
  }
  return found;
}

nb::object sums(const Array& table, const std::vector<Window>& windows, const Array& along, bool squared,
                std::int64_t threads) {
  const std::vector<GridWindow> near = checked_windows(windows);
  std::size_t cells = 1;
  for (const GridWindow& each : near) cells *= static_cast<std::size_t>(each.nodes);
  const double* places = checked<double>(along, "along", {any_size, near.size()});
  const std::size_t many = thread_count(threads), queries = along.shape(0);
  Result<double> answers(queries);
  if (table.dtype() == nb::dtype<std::int32_t>()) {
    const auto* values = checked<std::int32_t>(table, "table", {cells});
    const nb::gil_scoped_release released;
    sum_windows(near, values, squared, places, queries, answers.data(), many);
  } else {
    const auto* values = checked<std::int64_t>(table, "table", {cells});
    const nb::gil_scoped_release released;
    sum_windows(near, values, squared, places, queries, answers.data(), many);
  }
  return answers.array();
}

nb::object coefficients(const std::vector<Window>& windows, const Array& along, bool squared, std::int64_t threads) {
  const std::vector<GridWindow> near = checked_windows(windows);
  const double* places = checked<double>(along, "along", {any_size, near.size()});
  const std::size_t many = thread_count(threads);
  Result<double> answers(along.shape(0));
  {
    const nb::gil_scoped_release released;
    sum_coefficients(near, squared, places, along.shape(0), answers.data(), many);
  }
  return answers.array();
}

}  // namespace

void bind_grid(nb::module_& module) {
  module.def("count_on_grid", &count, nb::arg("records").noconvert(), nb::arg("table").noconvert(), nb::arg("axes"),
             nb::arg("part"), nb::arg("whole"), nb::arg("step"), nb::arg("threads"),
             "Add step (+1 or -1) times every record's weights to the nodes of a grid, an int64 array of all of them.\n"
             "\n"
             "An axis has a number of cells, their side, and the parts of the nodes around a value by its place in a\n"
             "cell, int32 of shape (places, nodes), which sum to `part`; without them a value belongs to the nearest\n"
             "node. Weights are products of parts, as multiples of 1 / whole that sum to whole.",
             nb::sig(signature("def count_on_grid(records: Array[float32], table: Array[int64], axes: "
                               "collections.abc.Sequence[tuple[int, float, Array[int32] | None]], part: int, whole: "
                               "int, step: int, threads: int) -> None")));
  module.def(
      "sum_windows", &sums, nb::arg("table").noconvert(), nb::arg("windows"), nb::arg("along").noconvert(),
      nb::arg("squared"), nb::arg("threads"),
      "The sum over the nodes near each query of an int32 or int64 table, or of its squares, times products of\n"
      "coefficients.\n\n"
      "A window has a number of nodes and the coefficients of the nodes around a query by its place between two\n"
      "nodes, float64 of shape (steps + 1, nodes in reach), which are interpolated. `along`, of shape (queries,\n"
      "columns), counts cells from the first node.",
      nb::sig(signature("def sum_windows(table: Table, windows: "
                        "collections.abc.Sequence[tuple[int, Array[float64]]], along: Array[float64], squared: "
                        "bool, threads: int) -> Array[float64]")));
  module.def("sum_coefficients", &coefficients, nb::arg("windows"), nb::arg("along").noconvert(), nb::arg("squared"),
             nb::arg("threads"),
             "The sum over the nodes near each query of the products of coefficients, or of their squares.",
             nb::sig(signature("def sum_coefficients(windows: collections.abc.Sequence[tuple[int, Array[float64]]], "
                               "along: Array[float64], squared: bool, threads: int) -> Array[float64]")));
}

}  // namespace hushsum
