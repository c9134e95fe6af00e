// A hasher of rows of numbers, a table and an affine map, checked once: what a single query needs, without ceremony.
#pragma once

#include <cmath>
#include <cstdint>

#include "arrays.hpp"
#include "batch.hpp"
#include "dispatch.hpp"

namespace hushsum {

template <class Hasher>
class Reader {
 public:
  Reader(const Hasher& hasher, Array table, double scale, double shift)
      : hasher_(hasher), table_(std::move(table)), rows_(table_.shape(0)), scale_(scale), shift_(shift) {
    require(table_.ndim() == 2 && rows_ >= 1 && rows_ <= hasher.rows,
            "table must have as many rows as the hasher, or fewer");
    narrow_ = table_.dtype() == nanobind::dtype<std::int32_t>();
    if (narrow_) checked<std::int32_t>(table_, "table", {rows_, hasher.width});
    else checked<std::int64_t>(table_, "table", {rows_, hasher.width});
  }

  // scale * mean + shift for an array of float32 or float64 rows, or one row. None where the general path must look:
  // another type, order or width, no rows, or a number that single precision cannot hold.
  nanobind::object operator()(nanobind::handle queries) const {
    Array array;
    if (!nanobind::try_cast<Array>(queries, array, false) || array.ndim() < 1 || array.ndim() > 2)
      return nanobind::none();
    const std::size_t dim = hasher_.dim, lone = array.ndim() == 1 && dim > 1;
    const std::size_t count = lone ? 1 : array.shape(0);
    if (count == 0 || array.size() != count * dim || (array.ndim() == 2 && array.shape(1) != dim) || !contiguous(array))
      return nanobind::none();
    if (array.dtype() == nanobind::dtype<float>()) return answers(static_cast<const float*>(array.data()), count);
    if (array.dtype() != nanobind::dtype<double>()) return nanobind::none();
    Buffer<float> rounded(count * dim);
    for (std::size_t i = 0; i < count * dim; ++i)
      rounded[i] = static_cast<float>(static_cast<const double*>(array.data())[i]);
    return answers(rounded.data(), count);
  }

 private:
  nanobind::object answers(const float* queries, std::size_t count) const {
    if (!hot_loops().all_finite(queries, count * hasher_.dim)) return nanobind::none();
    const auto batch = hasher_.bind(queries, count);
    Result<double> mean(count);
    {
      const nanobind::gil_scoped_release released;
      if (narrow_)
        mean_batch(batch, static_cast<const std::int32_t*>(table_.data()), rows_, 1, scale_, shift_, mean.data());
      else mean_batch(batch, static_cast<const std::int64_t*>(table_.data()), rows_, 1, scale_, shift_, mean.data());
    }
    return mean.array();
  }

  const Hasher& hasher_;
  Array table_;
  std::size_t rows_;
  double scale_, shift_;
  bool narrow_;
};

}  // namespace hushsum
