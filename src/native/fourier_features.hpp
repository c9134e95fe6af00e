// Random Fourier features: the cosine and the sine of every projection of a record, as integers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arrays.hpp"
#include "batch.hpp"
#include "dispatch.hpp"
#include "packed_parameters.hpp"

namespace hushsum {

// The mean of `rows` products times scale, and the variance of that mean from the spread over blocks; NaN for one
// block.
void finish_blocks(const BlockSums& sums, std::size_t rows, std::size_t block, double scale, double& mean,
                   double& variance);

class FeatureMap {
 public:
  // Frequencies in turns: a projection of 1 is a whole period.
  explicit FeatureMap(const Array& frequencies);

  // table[row][0] += step * cosine and table[row][1] += step * sine for every record, in integers; threads own rows.
  void add(const float* records, std::size_t count, std::int64_t* table, std::int64_t step, std::size_t threads) const;

  // The two integers of every record and row.
  void write_integers(const float* records, std::size_t count, std::int32_t* integers) const;

  // Cosine and sine of every record and row, unrounded.
  void write_waves(const float* records, std::size_t count, float* waves) const;

  // scale * sum over the first rows of table[row][0] * cosine + table[row][1] * sine; threads own records.
  template <class Value>
  void read(const float* records, std::size_t count, const Value* table, std::size_t rows, double scale,
            std::size_t threads, double* answers) const;

  // The same as mean over rows of scale * (...), and the variance of that mean from the spread over blocks of `block`
  // rows; NaN for a single block.
  template <class Value>
  void spread(const float* records, std::size_t count, const Value* table, std::size_t rows, std::size_t block,
              double scale, std::size_t threads, double* mean, double* variance) const;

  std::size_t rows, dim;

 private:
  template <class Value>
  Buffer<float> coefficients(const Value* table, std::size_t rows) const;

  std::size_t panels() const;
  ProjectionParameters plan() const;

  Buffer<float> weights_, offsets_;
};

// Makes every row orthogonal to those before it in its block of `dim` rows (modified Gram-Schmidt) and keeps its
// length. Sums run in one written order, so the result is the same on every machine. A row that lies in the span of the
// others is left as rounding leaves it.
void orthogonalise(double* rows, std::size_t count, std::size_t dim);

}  // namespace hushsum
