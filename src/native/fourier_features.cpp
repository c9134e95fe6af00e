#include "fourier_features.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "threads.hpp"

namespace hushsum {

namespace {

constexpr std::size_t chunk_bytes = 4u << 20;   // records that every panel visits before the next are fetched
constexpr std::size_t most_records = 1u << 20;  // whose sums fit 32 bits
constexpr std::size_t panels_at_once = 8;       // read in single precision before they are added in double
constexpr std::size_t held_records = 504;       // queries that visit some panels before the next are fetched

static_assert(most_records * wave_length < (std::size_t{1} << 31), "sums of whole chunks fit 32 bits");

std::size_t matrix_axis(const Array& array, std::size_t which) {
  require(array.ndim() == 2 && array.shape(0) >= 1 && array.shape(1) >= 1,
          "frequencies must be a matrix with a row for every feature");
  return array.shape(which);
}

// Eight running sums, then pairs of them: the order that a compiler may turn into vectors without changing it.
double dot(const double* a, const double* b, std::size_t size) {
  constexpr std::size_t parts = 8;
  double sums[parts] = {};
  std::size_t k = 0;
  for (; k + parts <= size; k += parts)
    for (std::size_t p = 0; p < parts; ++p) sums[p] += a[k + p] * b[k + p];
  for (std::size_t p = 0; k < size; ++k, ++p) sums[p] += a[k] * b[k];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

}  // namespace

// Weighting a block's mean with its size is the usual estimate where all blocks are equal, and unbiased for independent
// rows where the last one is shorter.
void finish_blocks(const BlockSums& of, std::size_t rows, std::size_t block, double scale, double& mean,
                   double& variance) {
  const std::size_t rest = rows % block, blocks = rows / block + (rest != 0);
  const double sum = of.sum + of.block_sum, many = static_cast<double>(rows);
  const double squares = of.squares / static_cast<double>(block) +
                         (rest == 0 ? 0.0 : of.block_sum * of.block_sum / static_cast<double>(rest));
  mean = scale * sum / many;
  variance = blocks < 2
                 ? std::numeric_limits<double>::quiet_NaN()
                 : scale * scale * std::max(0.0, squares - sum * sum / many) / (static_cast<double>(blocks - 1) * many);
}

FeatureMap::FeatureMap(const Array& frequencies)
    : rows(matrix_axis(frequencies, 0)),
      dim(matrix_axis(frequencies, 1)),
      weights_(panels() * simd_loops().panel_rows * dim),
      offsets_(panels() * simd_loops().panel_rows) {
  const float* given = checked<float>(frequencies, "frequencies", {rows, dim});
  const std::size_t pitch = simd_loops().panel_rows;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t k = 0; k < dim; ++k) weights_[(r / pitch * dim + k) * pitch + r % pitch] = given[r * dim + k];
}

std::size_t FeatureMap::panels() const {
  const std::size_t pitch = simd_loops().panel_rows;
  return (rows + pitch - 1) / pitch;
}

ProjectionParameters FeatureMap::plan() const {
  return {.weights = weights_.data(), .offsets = offsets_.data(), .power = 1, .dim = dim};
}

void FeatureMap::add(const float* records, std::size_t count, std::int64_t* table, std::int64_t step,
                     std::size_t threads) const {
  const SimdLoops& loops = simd_loops();
  const std::size_t pitch = loops.panel_rows, many = useful_threads(panels(), count * rows, threads);
  const std::size_t chunk = std::clamp<std::size_t>(chunk_bytes / (dim * sizeof(float)), 1024, most_records);
  std::vector<Buffer<std::int32_t>> sums;
  sums.reserve(many);
  for (std::size_t t = 0; t < many; ++t) sums.emplace_back(2 * pitch);
  run_parallel(panels(), many, [&](Range own, std::size_t t) {
    for (std::size_t first = 0; first < count; first += chunk) {
      const std::size_t here = std::min(chunk, count - first);
      for (std::size_t panel = own.begin; panel < own.end; ++panel) {
        std::fill(sums[t].data(), sums[t].data() + 2 * pitch, 0);
        loops.add_waves(plan(), records + first * dim, here, panel, sums[t].data());
        for (std::size_t l = 0; l < std::min(pitch, rows - panel * pitch); ++l) {
          table[2 * (panel * pitch + l)] += step * sums[t][l];
          table[2 * (panel * pitch + l) + 1] += step * sums[t][pitch + l];
        }
      }
    }
  });
}

void FeatureMap::write_integers(const float* records, std::size_t count, std::int32_t* integers) const {
  const SimdLoops& loops = simd_loops();
  const std::size_t pitch = loops.panel_rows;
  Buffer<std::int32_t> sums(2 * pitch);
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t panel = 0; panel < panels(); ++panel) {
      std::fill(sums.data(), sums.data() + 2 * pitch, 0);
      loops.add_waves(plan(), records + j * dim, 1, panel, sums.data());
      for (std::size_t l = 0; l < std::min(pitch, rows - panel * pitch); ++l) {
        integers[2 * (j * rows + panel * pitch + l)] = sums[l];
        integers[2 * (j * rows + panel * pitch + l) + 1] = sums[pitch + l];
      }
    }
}

void FeatureMap::write_waves(const float* records, std::size_t count, float* waves) const {
  const SimdLoops& loops = simd_loops();
  const std::size_t pitch = loops.panel_rows, held = std::min<std::size_t>(count, 48);
  Buffer<float> part(held * 2 * pitch);
  for (std::size_t first = 0; first < count; first += held)
    for (std::size_t panel = 0; panel < panels(); ++panel) {
      const std::size_t here = std::min(held, count - first), used = std::min(pitch, rows - panel * pitch);
      loops.write_waves(plan(), records + first * dim, here, panel, part.data(), 2 * pitch);
      for (std::size_t j = 0; j < here; ++j)
        std::copy_n(part.data() + j * 2 * pitch, 2 * used, waves + 2 * ((first + j) * rows + panel * pitch));
    }
}

template <class Value>
Buffer<float> FeatureMap::coefficients(const Value* table, std::size_t rows_read) const {
  const std::size_t pitch = simd_loops().panel_rows, used = (rows_read + pitch - 1) / pitch;
  Buffer<float> found(used * 2 * pitch);
  for (std::size_t r = 0; r < rows_read; ++r)
    for (std::size_t part = 0; part < 2; ++part)
      found[(r / pitch * 2 + part) * pitch + r % pitch] = static_cast<float>(table[2 * r + part]);
  return found;
}

template <class Value>
void FeatureMap::read(const float* records, std::size_t count, const Value* table, std::size_t rows_read, double scale,
                      std::size_t threads, double* answers) const {
  const SimdLoops& loops = simd_loops();
  const std::size_t pitch = loops.panel_rows, used = (rows_read + pitch - 1) / pitch;
  const Buffer<float> weights = coefficients(table, rows_read);
  const std::size_t many = useful_threads(count, count * rows_read, threads);
  run_parallel(count, many, [&](Range own, std::size_t) {
    for (std::size_t first = own.begin; first < own.end; first += held_records) {
      const std::size_t here = std::min(held_records, own.end - first);
      std::fill(answers + first, answers + first + here, 0.0);
      for (std::size_t panel = 0; panel < used; panel += panels_at_once)
        loops.read_waves(plan(), records + first * dim, here, panel, std::min(panels_at_once, used - panel),
                         weights.data() + panel * 2 * pitch, answers + first);
      for (std::size_t j = first; j < first + here; ++j) answers[j] *= scale;
    }
  });
}

template <class Value>
void FeatureMap::spread(const float* records, std::size_t count, const Value* table, std::size_t rows_read,
                        std::size_t block, double scale, std::size_t threads, double* mean, double* variance) const {
  const SimdLoops& loops = simd_loops();
  const std::size_t pitch = loops.panel_rows, used = (rows_read + pitch - 1) / pitch;
  const Buffer<float> weights = coefficients(table, rows_read);
  const std::size_t many = useful_threads(count, count * rows_read, threads);
  std::vector<Buffer<BlockSums>> spaces;
  spaces.reserve(many);
  for (std::size_t t = 0; t < many; ++t) spaces.emplace_back(held_records);
  run_parallel(count, many, [&](Range own, std::size_t t) {
    BlockSums* sums = spaces[t].data();
    for (std::size_t first = own.begin; first < own.end; first += held_records) {
      const std::size_t here = std::min(held_records, own.end - first);
      std::fill(sums, sums + here, BlockSums{});
      for (std::size_t panel = 0; panel < used; panel += panels_at_once)
        loops.spread_waves(plan(), records + first * dim, here, panel, std::min(panels_at_once, used - panel),
                           rows_read, block, weights.data() + panel * 2 * pitch, sums);
      for (std::size_t j = 0; j < here; ++j)
        finish_blocks(sums[j], rows_read, block, scale, mean[first + j], variance[first + j]);
    }
  });
}

template void FeatureMap::read<std::int32_t>(const float*, std::size_t, const std::int32_t*, std::size_t, double,
                                             std::size_t, double*) const;
template void FeatureMap::read<std::int64_t>(const float*, std::size_t, const std::int64_t*, std::size_t, double,
                                             std::size_t, double*) const;

template void FeatureMap::spread<std::int32_t>(const float*, std::size_t, const std::int32_t*, std::size_t, std::size_t,
                                               double, std::size_t, double*, double*) const;
template void FeatureMap::spread<std::int64_t>(const float*, std::size_t, const std::int64_t*, std::size_t, std::size_t,
                                               double, std::size_t, double*, double*) const;

void orthogonalise(double* rows, std::size_t count, std::size_t dim) {
  std::vector<double> lengths(count);
  for (std::size_t r = 0; r < count; ++r) lengths[r] = std::sqrt(dot(rows + r * dim, rows + r * dim, dim));
  for (std::size_t r = 0; r < count; ++r) {
    double* row = rows + r * dim;
    for (std::size_t earlier = r / dim * dim; earlier < r; ++earlier) {
      const double* unit = rows + earlier * dim;
      const double along = dot(row, unit, dim);
      for (std::size_t k = 0; k < dim; ++k) row[k] -= along * unit[k];
    }
    const double length = std::sqrt(dot(row, row, dim));
    for (std::size_t k = 0; k < dim; ++k) row[k] /= length;
  }
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t k = 0; k < dim; ++k) rows[r * dim + k] *= lengths[r];
}

}  // namespace hushsum
