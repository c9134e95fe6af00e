// NumPy arrays at the boundary: checked once, then plain pointers.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

namespace hushsum {

using Array = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;
using WritableArray = nanobind::ndarray<nanobind::device::cpu>;

constexpr std::size_t any_size = static_cast<std::size_t>(-1);

inline void require(bool holds, const std::string& otherwise) {
  if (!holds) throw std::invalid_argument(otherwise);
}

template <class T>
const char* type_name();
template <> inline const char* type_name<float>() { return "float32"; }
template <> inline const char* type_name<std::int8_t>() { return "int8"; }
template <> inline const char* type_name<std::int32_t>() { return "int32"; }
template <> inline const char* type_name<std::int64_t>() { return "int64"; }
template <> inline const char* type_name<std::uint32_t>() { return "uint32"; }
template <> inline const char* type_name<std::uint64_t>() { return "uint64"; }

template <class Any>
bool contiguous(const Any& array) {
  std::int64_t stride = 1;
  bool packed = true;
  for (std::size_t axis = array.ndim(); axis-- > 0;) {
    packed = packed && (array.shape(axis) <= 1 || array.stride(axis) == stride);
    stride *= static_cast<std::int64_t>(array.shape(axis));
  }
  return packed || stride == 0;
}

// The data of an array that must have this element type and shape and be C-contiguous.
template <class T, class Any>
auto checked(const Any& array, const char* name, std::initializer_list<std::size_t> shape) {
  using Pointer = std::conditional_t<std::is_same_v<Any, Array>, const T*, T*>;
  bool good = array.dtype() == nanobind::dtype<T>() && array.ndim() == shape.size() && contiguous(array);
  if (good) {
    std::size_t axis = 0;
    for (const std::size_t size : shape) {
      good = good && (size == any_size || array.shape(axis) == size);
      ++axis;
    }
  }
  if (!good) {
    std::string wanted;
    for (const std::size_t size : shape)
      wanted += (wanted.empty() ? "" : ", ") + (size == any_size ? std::string("any") : std::to_string(size));
    std::string got;
    for (std::size_t axis = 0; axis < array.ndim(); ++axis)
      got += (got.empty() ? "" : ", ") + std::to_string(array.shape(axis));
    throw std::invalid_argument(std::string(name) + " must be a C-contiguous " + type_name<T>() + " array of shape (" +
                                wanted + "), got shape (" + got + ") or another type or order; pass it through " +
                                "numpy.ascontiguousarray with that dtype");
  }
  return static_cast<Pointer>(array.data());
}

// A new NumPy array that owns its data.
template <class T>
class Result {
 public:
  explicit Result(std::size_t size) : data_(new T[size == 0 ? 1 : size]) {}
  T* data() { return data_.get(); }
  nanobind::ndarray<nanobind::numpy, T> give(std::initializer_list<std::size_t> shape) {
    T* data = data_.release();
    const nanobind::capsule owner(data, [](void* held) noexcept { delete[] static_cast<T*>(held); });
    return {data, shape, owner};
  }

 private:
  std::unique_ptr<T[]> data_;
};

}  // namespace hushsum
