#include "structured_fourier_features.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "dispatch.hpp"
#include "fourier_features.hpp"
#include "threads.hpp"

namespace hushsum {

namespace {

constexpr std::size_t chunk_bytes = 1u << 18;   // records that every block visits before the next are fetched
constexpr std::size_t most_records = 1u << 20;  // whose sums fit 32 bits
constexpr std::size_t held_records = 512;       // queries that visit every block before the next are fetched

std::size_t signs_axis(const Array& signs, std::size_t which) {
  require(signs.ndim() == 3 && signs.shape(0) >= 1 && signs.shape(1) == 3 && std::has_single_bit(signs.shape(2)),
          "signs must have the axes (blocks, 3, a power of two)");
  return signs.shape(which);
}

std::size_t length(const Array& scales) {
  require(scales.ndim() == 1 && scales.shape(0) >= 1, "scales must have one number for each row");
  return scales.shape(0);
}

}  // namespace

StructuredFeatureMap::StructuredFeatureMap(const Array& signs, const Array& scales, std::size_t dim)
    : rows(length(scales)),
      dim(dim),
      size(signs_axis(signs, 2)),
      blocks(signs_axis(signs, 0)),
      signs_(blocks * 3 * size),
      scales_(blocks * size) {
  require(dim >= 1 && dim <= size, "dim must be from 1 to " + std::to_string(size) + ", got " + std::to_string(dim));
  require(rows <= blocks * size && rows > (blocks - 1) * size, "scales must fill all blocks but the last");
  const auto* flips = checked<std::int8_t>(signs, "signs", {blocks, 3, size});
  const float* given = checked<float>(scales, "scales", {rows});
  for (std::size_t i = 0; i < signs_.size(); ++i) {
    require(flips[i] == 1 || flips[i] == -1, "signs must be +1 or -1");
    signs_[i] = flips[i];
  }
  std::copy(given, given + rows, scales_.data());
}

StructuredWaveParameters StructuredFeatureMap::plan() const {
  return {.signs = signs_.data(), .scales = scales_.data(), .size = size, .dim = dim};
}

std::vector<Buffer<unsigned char>> StructuredFeatureMap::scratch(std::size_t many) const {
  std::vector<Buffer<unsigned char>> spaces;
  spaces.reserve(many);
  for (std::size_t t = 0; t < many; ++t) spaces.emplace_back(simd_loops().structured_waves_scratch(plan()));
  return spaces;
}

void StructuredFeatureMap::add(const float* records, std::size_t count, std::int64_t* table, std::int64_t step,
                               std::size_t threads) const {
  const SimdLoops& loops = simd_loops();
  const std::size_t many = useful_threads(blocks, count * rows, threads);
  const std::size_t chunk = std::clamp<std::size_t>(chunk_bytes / (dim * sizeof(float)), 256, most_records);
  auto spaces = scratch(many);
  std::vector<Buffer<std::int32_t>> sums;
  sums.reserve(many);
  for (std::size_t t = 0; t < many; ++t) sums.emplace_back(2 * size);
  run_parallel(blocks, many, [&](Range own, std::size_t t) {
    for (std::size_t first = 0; first < count; first += chunk) {
      const std::size_t here = std::min(chunk, count - first);
      for (std::size_t block = own.begin; block < own.end; ++block) {
        std::fill(sums[t].data(), sums[t].data() + 2 * size, 0);
        loops.add_structured_waves(plan(), records + first * dim, here, block, sums[t].data(), spaces[t].data());
        for (std::size_t r = 0; r < std::min(size, rows - block * size); ++r) {
          table[2 * (block * size + r)] += step * sums[t][r];
          table[2 * (block * size + r) + 1] += step * sums[t][size + r];
        }
      }
    }
  });
}

void StructuredFeatureMap::write_integers(const float* records, std::size_t count, std::int32_t* integers) const {
  std::vector<std::int64_t> table(2 * rows);
  for (std::size_t j = 0; j < count; ++j) {
    std::fill(table.begin(), table.end(), 0);
    add(records + j * dim, 1, table.data(), 1, 1);
    std::copy(table.begin(), table.end(), integers + j * 2 * rows);
  }
}

template <class Value>
Buffer<float> StructuredFeatureMap::coefficients(const Value* table, std::size_t rows_read) const {
  Buffer<float> found((rows_read + size - 1) / size * 2 * size);
  for (std::size_t r = 0; r < rows_read; ++r)
    for (std::size_t part = 0; part < 2; ++part)
      found[(r / size * 2 + part) * size + r % size] = static_cast<float>(table[2 * r + part]);
  return found;
}

template <class Value>
void StructuredFeatureMap::read(const float* records, std::size_t count, const Value* table, std::size_t rows_read,
                                double scale, std::size_t threads, double* answers) const {
  const SimdLoops& loops = simd_loops();
  const Buffer<float> weights = coefficients(table, rows_read);
  const std::size_t used = (rows_read + size - 1) / size, many = useful_threads(count, count * rows_read, threads);
  auto spaces = scratch(many);
  run_parallel(count, many, [&](Range own, std::size_t t) {
    for (std::size_t first = own.begin; first < own.end; first += held_records) {
      const std::size_t here = std::min(held_records, own.end - first);
      std::fill(answers + first, answers + first + here, 0.0);
      for (std::size_t block = 0; block < used; ++block)
        loops.read_structured_waves(plan(), records + first * dim, here, block, weights.data() + block * 2 * size,
                                    answers + first, spaces[t].data());
      for (std::size_t j = first; j < first + here; ++j) answers[j] *= scale;
    }
  });
}

template <class Value>
void StructuredFeatureMap::spread(const float* records, std::size_t count, const Value* table, std::size_t rows_read,
                                  std::size_t block_rows, double scale, std::size_t threads, double* mean,
                                  double* variance) const {
  const SimdLoops& loops = simd_loops();
  const Buffer<float> weights = coefficients(table, rows_read);
  const std::size_t used = (rows_read + size - 1) / size, many = useful_threads(count, count * rows_read, threads);
  auto spaces = scratch(many);
  std::vector<Buffer<BlockSums>> sums;
  sums.reserve(many);
  for (std::size_t t = 0; t < many; ++t) sums.emplace_back(held_records);
  run_parallel(count, many, [&](Range own, std::size_t t) {
    for (std::size_t first = own.begin; first < own.end; first += held_records) {
      const std::size_t here = std::min(held_records, own.end - first);
      std::fill(sums[t].data(), sums[t].data() + here, BlockSums{});
      for (std::size_t block = 0; block < used; ++block)
        loops.spread_structured_waves(plan(), records + first * dim, here, block, block_rows == 1,
                                      (block + 1) * size <= rows_read, weights.data() + block * 2 * size,
                                      sums[t].data(), spaces[t].data());
      for (std::size_t j = 0; j < here; ++j)
        finish_blocks(sums[t][j], rows_read, block_rows, scale, mean[first + j], variance[first + j]);
    }
  });
}

template void StructuredFeatureMap::read<std::int32_t>(const float*, std::size_t, const std::int32_t*, std::size_t,
                                                       double, std::size_t, double*) const;
template void StructuredFeatureMap::read<std::int64_t>(const float*, std::size_t, const std::int64_t*, std::size_t,
                                                       double, std::size_t, double*) const;
template void StructuredFeatureMap::spread<std::int32_t>(const float*, std::size_t, const std::int32_t*, std::size_t,
                                                         std::size_t, double, std::size_t, double*, double*) const;
template void StructuredFeatureMap::spread<std::int64_t>(const float*, std::size_t, const std::int64_t*, std::size_t,
                                                         std::size_t, double, std::size_t, double*, double*) const;

}  // namespace hushsum
