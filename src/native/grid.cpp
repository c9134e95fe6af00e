#include "grid.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "threads.hpp"

namespace hushsum {

namespace {

constexpr std::int32_t one_part = 1;

// The integer at or below x, from 0 to most; NaN, which no record has, gives 0.
std::int64_t limited_floor(double x, double most) { return x > 0.0 ? static_cast<std::int64_t>(std::min(x, most)) : 0; }

// Where a record's weights go along one column.
struct Around {
  std::int64_t first;
  const std::int32_t* parts;
  std::size_t largest;  // the first of the largest parts
};

Around around(const GridAxis& axis, float value) {
  const double along = static_cast<double>(value) / axis.spacing + 0.5 * static_cast<double>(axis.cells);
  if (axis.parts == nullptr) {
    return {limited_floor(along + 0.5, static_cast<double>(axis.cells)), &one_part, 0};
  }
  const double places = static_cast<double>(std::int64_t{1} << axis.place_bits);
  const std::int64_t place = limited_floor(along * places, static_cast<double>(axis.cells) * places - 1.0);
  const std::int64_t cell = place >> axis.place_bits;
  const std::int32_t* parts = axis.parts + static_cast<std::size_t>(place - (cell << axis.place_bits)) * axis.around;
  return {cell, parts, static_cast<std::size_t>(std::max_element(parts, parts + axis.around) - parts)};
}

// Of every column as many nodes as Width get weights, or as many as its axis says where that is 0.
template <std::size_t Columns, std::size_t Width>
class Counter {
 public:
  Counter(const GridCount& grid, std::int64_t step, std::int64_t* table) : grid_(grid), step_(step), table_(table) {}

  void add(const float* record) {
    std::size_t largest = 0;
    for (std::size_t c = 0; c < Columns; ++c) {
      around_[c] = around(grid_.axes[c], record[c]);
      largest = largest * static_cast<std::size_t>(grid_.axes[c].nodes) + static_cast<std::size_t>(around_[c].first) +
                around_[c].largest;
    }
    const std::int64_t added = spread<0>(0, grid_.factor);
    table_[largest] += step_ * (grid_.whole - added);
  }

 private:
  // Adds the weights of the nodes along columns Column, ... and returns what they sum to.
  template <std::size_t Column>
  std::int64_t spread(std::size_t row, std::int64_t product) {
    const GridAxis& axis = grid_.axes[Column];
    const Around& own = around_[Column];
    const std::size_t first = row * static_cast<std::size_t>(axis.nodes) + static_cast<std::size_t>(own.first);
    const std::int64_t half = grid_.shift > 0 ? std::int64_t{1} << (grid_.shift - 1) : 0;
    std::int64_t sum = 0;
    const std::size_t width = Width == 0 ? axis.around : Width;
    for (std::size_t j = 0; j < width; ++j) {
      const std::int64_t weight = product * own.parts[j];
      if constexpr (Column + 1 < Columns) {
        sum += spread<Column + 1>(first + j, weight);
      } else {
        const std::int64_t rounded = (weight + half) >> grid_.shift;
        table_[first + j] += step_ * rounded;
        sum += rounded;
      }
    }
    return sum;
  }

  const GridCount& grid_;
  const std::int64_t step_;
  std::int64_t* const table_;
  std::array<Around, Columns> around_;
};

template <std::size_t Columns, std::size_t Width>
void count_records(const GridCount& grid, const float* records, std::size_t count, std::int64_t step,
                   std::int64_t* table) {
  Counter<Columns, Width> counter(grid, step, table);
  for (std::size_t i = 0; i < count; ++i) counter.add(records + i * Columns);
}

// Splines of degree 3 and 5, the defaults, have loops of their own.
template <std::size_t Columns>
void count_range(const GridCount& grid, const float* records, std::size_t count, std::int64_t step,
                 std::int64_t* table) {
  const auto all = [&](std::size_t width) {
    return std::all_of(grid.axes.begin(), grid.axes.end(), [&](const GridAxis& axis) { return axis.around == width; });
  };
  const auto loop = all(4) ? count_records<Columns, 4> : all(6) ? count_records<Columns, 6> : count_records<Columns, 0>;
  loop(grid, records, count, step, table);
}

}  // namespace

void count_on_grid(const GridCount& grid, const float* records, std::size_t count, std::int64_t step,
                   std::int64_t* table, std::size_t threads) {
  const std::size_t columns = grid.axes.size();
  std::size_t cells = 1, increments = count;
  for (const GridAxis& axis : grid.axes) {
    cells *= static_cast<std::size_t>(axis.nodes);
    increments *= axis.around;
  }
  // Every further thread counts into a table of its own, which must cost less than it saves.
  const std::size_t worthwhile = 1 + increments / (4 * cells);
  const std::size_t many = useful_threads(count, increments, std::min(threads, worthwhile));
  std::vector<std::vector<std::int64_t>> own(many - 1);
  for (auto& each : own) each.resize(cells);
  constexpr void (*loops[])(const GridCount&, const float*, std::size_t, std::int64_t, std::int64_t*) = {
      count_range<1>, count_range<2>, count_range<3>, count_range<4>};
  run_parallel(count, many, [&](Range part, std::size_t t) {
    loops[columns - 1](grid, records + part.begin * columns, part.end - part.begin, step,
                       t == 0 ? table : own[t - 1].data());
  });
  run_parallel(cells, many, [&](Range part, std::size_t) {
    for (const auto& each : own)
      for (std::size_t i = part.begin; i < part.end; ++i) table[i] += each[i];
  });
}

namespace {

// Four partial sums: the same order of additions everywhere.
typedef double Four __attribute__((vector_size(32)));

double total(Four v) { return (v[0] + v[1]) + (v[2] + v[3]); }

template <class Value>
Four four(const Value* from) {
  if constexpr (std::is_same_v<Value, double>) {
    Four v;
    std::memcpy(&v, from, sizeof v);
    return v;
  } else {
    return Four{static_cast<double>(from[0]), static_cast<double>(from[1]), static_cast<double>(from[2]),
                static_cast<double>(from[3])};
  }
}

// The sum of term(values, factors) over `many` of both.
template <class Value, class Term>
double sum_of(const Value* values, const double* factors, std::size_t many, const Term& term) {
  Four sum = {};
  std::size_t j = 0;
  for (; j + 4 <= many; j += 4) sum += term(four(values + j), four(factors + j));
  if (j < many) {
    double last[2][4] = {};
    for (std::size_t l = 0; j + l < many; ++l) {
      last[0][l] = static_cast<double>(values[j + l]);
      last[1][l] = factors[j + l];
    }
    sum += term(four(last[0]), four(last[1]));
  }
  return total(sum);
}

// The nodes near a query along one column that the grid has: the first, how many, and their coefficients.
struct Near {
  std::size_t first = 0, many = 0;
  const double* factors = nullptr;
};

Near near(const GridWindow& window, double along, double* into) {
  const double before = std::floor(along), reach = static_cast<double>(window.reach);
  if (!(before >= -reach && before < static_cast<double>(window.nodes) + reach)) return {};
  const double place = (along - before) * static_cast<double>(window.steps);
  const std::size_t left = std::min(static_cast<std::size_t>(place), window.steps - 1), width = 2 * window.reach;
  const double part = place - static_cast<double>(left);
  const double *lower = window.rows + left * width, *upper = lower + width;
  for (std::size_t j = 0; j < width; ++j) into[j] = lower[j] + part * (upper[j] - lower[j]);
  const std::int64_t start = static_cast<std::int64_t>(before) + 1 - static_cast<std::int64_t>(window.reach);
  const std::int64_t first = std::max<std::int64_t>(start, 0);
  const std::int64_t end = std::min(window.nodes, start + static_cast<std::int64_t>(width));
  if (end <= first) return {};
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(end - first), into + (first - start)};
}

template <class Value, bool Squared>
double weighted(const GridWindow* window, const Near* near, std::size_t columns, std::size_t row, const Value* table) {
  const std::size_t first = row * static_cast<std::size_t>(window->nodes) + near->first;
  if (columns == 1)
    return sum_of(table + first, near->factors, near->many, [](Four values, Four factors) {
      if constexpr (Squared) values *= values;
      return factors * values;
    });
  double sum = 0.0;
  for (std::size_t j = 0; j < near->many; ++j)
    sum += near->factors[j] * weighted<Value, Squared>(window + 1, near + 1, columns - 1, first + j, table);
  return sum;
}

std::size_t widths(const std::vector<GridWindow>& windows) {
  return std::accumulate(windows.begin(), windows.end(), std::size_t{0},
                         [](std::size_t sum, const GridWindow& each) { return sum + 2 * each.reach; });
}

// Calls use(near, i) for each query, with the nodes near it.
template <class Use>
void for_each_query(const std::vector<GridWindow>& windows, const double* along, std::size_t count, std::size_t threads,
                    const Use& use) {
  const std::size_t columns = windows.size(), width = widths(windows);
  const std::size_t many = useful_threads(count, count * width * width, threads);
  std::vector<double> factors(many * width);
  run_parallel(count, many, [&](Range part, std::size_t t) {
    std::array<Near, most_grid_columns> found;
    for (std::size_t i = part.begin; i < part.end; ++i) {
      double* into = factors.data() + t * width;
      for (std::size_t c = 0; c < columns; ++c) {
        found[c] = near(windows[c], along[i * columns + c], into);
        into += 2 * windows[c].reach;
      }
      use(found.data(), i);
    }
  });
}

}  // namespace

template <class Value>
void sum_windows(const std::vector<GridWindow>& windows, const Value* table, bool squared, const double* along,
                 std::size_t count, double* sums, std::size_t threads) {
  if constexpr (!std::is_same_v<Value, double>) {
    std::size_t cells = 1, nodes = count;
    for (const GridWindow& each : windows) {
      cells *= static_cast<std::size_t>(each.nodes);
      nodes *= 2 * each.reach;
    }
    if (nodes > cells) {  // Each value is read more than once: converted once.
      const std::vector<double> values(table, table + cells);
      return sum_windows(windows, values.data(), squared, along, count, sums, threads);
    }
  }
  const auto sum = squared ? weighted<Value, true> : weighted<Value, false>;
  for_each_query(windows, along, count, threads, [&](const Near* near, std::size_t i) {
    sums[i] = sum(windows.data(), near, windows.size(), 0, table);
  });
}

template void sum_windows(const std::vector<GridWindow>&, const std::int32_t*, bool, const double*, std::size_t,
                          double*, std::size_t);
template void sum_windows(const std::vector<GridWindow>&, const std::int64_t*, bool, const double*, std::size_t,
                          double*, std::size_t);

void sum_coefficients(const std::vector<GridWindow>& windows, bool squared, const double* along, std::size_t count,
                      double* sums, std::size_t threads) {
  for_each_query(windows, along, count, threads, [&](const Near* near, std::size_t i) {
    sums[i] = 1.0;
    for (std::size_t c = 0; c < windows.size(); ++c) {
      const auto term = [squared](Four values, Four factors) { return squared ? values * factors : factors; };
      sums[i] *= sum_of(near[c].factors, near[c].factors, near[c].many, term);
    }
  });
}

}  // namespace hushsum
