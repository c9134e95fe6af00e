// Records counted on the nodes of a grid, and kernel sums read from the nodes near a query.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hushsum {

constexpr std::size_t most_grid_columns = 4, most_spline_nodes = 6;

// How a value of one column becomes weights of nodes. Without `parts` a value belongs to the nearest node alone.
struct GridAxis {
  std::int64_t cells, nodes;
  double spacing;
  std::size_t around;         // nodes that get a weight
  unsigned place_bits;        // 2^place_bits places in a cell are distinguished
  const std::int32_t* parts;  // [places][around]
};

// A record's weights are products of parts over columns, times `factor`, then rounded to multiples of 2^shift and
// divided by it. All of them sum to `whole`: the largest takes what rounding leaves.
struct GridCount {
  std::vector<GridAxis> axes;
  std::int64_t whole, factor;
  unsigned shift;
};

// Adds step times each record's weights to table[nodes of the first column][...], row after row. `records` is
// [count][columns], relative to the middle of the box, and finite.
void count_on_grid(const GridCount& grid, const float* records, std::size_t count, std::int64_t step,
                   std::int64_t* table, std::size_t threads);

// Coefficients of the 2 * reach nodes around a query, by its place between two nodes: [steps + 1][2 * reach], read by
// linear interpolation.
struct GridWindow {
  std::int64_t nodes;
  std::size_t reach, steps;
  const double* rows;
};

// For each query, `along` [count][columns] in cells after the first node: the sum over the nodes in reach of the
// table's values, or of their squares, times the products of coefficients.
template <class Value>
void sum_windows(const std::vector<GridWindow>& windows, const Value* table, bool squared, const double* along,
                 std::size_t count, double* sums, std::size_t threads);

// The sum of the products of coefficients, or of their squares.
void sum_coefficients(const std::vector<GridWindow>& windows, bool squared, const double* along, std::size_t count,
                      double* sums, std::size_t threads);

}  // namespace hushsum
