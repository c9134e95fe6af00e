// A hasher, a table and an affine map, checked once: what a single query needs, without ceremony.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "arrays.hpp"
#include "batch.hpp"
#include "dispatch.hpp"
#include "hashers.hpp"
#include "packed_table.hpp"

namespace hushsum {

// An int32, int64 or packed table with the shape of a hasher, and the line that its means are mapped by.
class ReadTable {
 public:
  template <class Hasher>
  ReadTable(const Hasher& hasher, nanobind::object table, double scale, double shift)
      : kept_(std::move(table)), scale_(scale), shift_(shift) {
    if (nanobind::try_cast(kept_, packed_, false)) {
      rows_ = packed_->shape().rows;
      require(rows_ <= hasher.rows && packed_->shape().width == hasher.width,
              "table must have the width of the hasher, and no more rows");
      return;
    }
    array_ = nanobind::cast<Array>(kept_, false);
    rows_ = array_.ndim() == 2 ? array_.shape(0) : 0;
    require(rows_ >= 1 && rows_ <= hasher.rows, "table must have as many rows as the hasher, or fewer");
    if (array_.dtype() == nanobind::dtype<std::int32_t>())
      narrow_ = checked<std::int32_t>(array_, "table", {rows_, hasher.width});
    else wide_ = checked<std::int64_t>(array_, "table", {rows_, hasher.width});
  }

  nanobind::object means(const Batch& batch) const {
    Result<double> mean(batch.count);
    {
      const nanobind::gil_scoped_release released;
      if (packed_ != nullptr) mean_batch(batch, PackedRows{packed_, 0}, rows_, 1, scale_, shift_, mean.data());
      else if (narrow_ != nullptr) mean_batch(batch, narrow_, rows_, 1, scale_, shift_, mean.data());
      else mean_batch(batch, wide_, rows_, 1, scale_, shift_, mean.data());
    }
    return mean.array();
  }

 private:
  nanobind::object kept_;
  Array array_;
  std::size_t rows_;
  double scale_, shift_;
  const PackedTable* packed_ = nullptr;
  const std::int32_t* narrow_ = nullptr;
  const std::int64_t* wide_ = nullptr;
};

template <class Hasher>
class Reader {
 public:
  Reader(const Hasher& hasher, nanobind::object table, double scale, double shift)
      : hasher_(hasher), table_(hasher, std::move(table), scale, shift) {}

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
    if (!simd_loops().all_finite(queries, count * hasher_.dim)) return nanobind::none();
    return table_.means(hasher_.bind(queries, count));
  }

  const Hasher& hasher_;
  ReadTable table_;
};

// The same for sets.
template <>
class Reader<MinHasher> {
 public:
  Reader(const MinHasher& hasher, nanobind::object table, double scale, double shift)
      : hasher_(hasher), table_(hasher, std::move(table), scale, shift) {}

  // scale * mean + shift for a list of a few NumPy arrays of int64, or None for everything else.
  nanobind::object operator()(nanobind::handle queries) const {
    static PyObject* const numpy_array = numpy_name("ndarray");
    constexpr std::size_t few = 8;
    if (!PyList_CheckExact(queries.ptr())) return nanobind::none();
    const std::size_t count = nanobind::len(queries);
    if (count == 0 || count > few) return nanobind::none();
    Array sets[few];
    std::int64_t starts[few + 1] = {};
    for (std::size_t j = 0; j < count; ++j) {
      const nanobind::handle set = PyList_GET_ITEM(queries.ptr(), static_cast<Py_ssize_t>(j));
      if (Py_TYPE(set.ptr()) != reinterpret_cast<PyTypeObject*>(numpy_array)) return nanobind::none();
      if (!nanobind::try_cast<Array>(set, sets[j], false) || sets[j].ndim() != 1 || !contiguous(sets[j]) ||
          sets[j].dtype() != nanobind::dtype<std::int64_t>())
        return nanobind::none();
      starts[j + 1] = starts[j] + static_cast<std::int64_t>(sets[j].shape(0));
    }
    std::vector<std::int64_t> values;
    values.reserve(static_cast<std::size_t>(starts[count]));
    for (std::size_t j = 0; j < count; ++j) {
      const auto* from = static_cast<const std::int64_t*>(sets[j].data());
      values.insert(values.end(), from, from + sets[j].shape(0));
    }
    return table_.means(hasher_.bind(values.data(), values.size(), starts, count));
  }

 private:
  const MinHasher& hasher_;
  ReadTable table_;
};

}  // namespace hushsum
