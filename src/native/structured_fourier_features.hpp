// Random Fourier features of structured projections: three rounds of signs and Hadamard transforms per block of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays.hpp"
#include "batch.hpp"
#include "packed_parameters.hpp"

namespace hushsum {

class StructuredFeatureMap {
 public:
  // Signs int8 (blocks, 3, size), size a power of two of at least dim; scales float32 (rows,), in turns per output.
  StructuredFeatureMap(const Array& signs, const Array& scales, std::size_t dim);

  // As those of FeatureMap.
  void add(const float* records, std::size_t count, std::int64_t* table, std::int64_t step, std::size_t threads) const;
  void write_integers(const float* records, std::size_t count, std::int32_t* integers) const;
  template <class Value>
  void read(const float* records, std::size_t count, const Value* table, std::size_t rows, double scale,
            std::size_t threads, double* answers) const;
  // `block` is 1 or the size of the matrix.
  template <class Value>
  void spread(const float* records, std::size_t count, const Value* table, std::size_t rows, std::size_t block,
              double scale, std::size_t threads, double* mean, double* variance) const;

  std::size_t rows, dim, size, blocks;

 private:
  StructuredWaveParameters plan() const;
  template <class Value>
  Buffer<float> coefficients(const Value* table, std::size_t rows) const;
  std::vector<Buffer<unsigned char>> scratch(std::size_t many) const;

  Buffer<float> signs_, scales_;
};

}  // namespace hushsum
