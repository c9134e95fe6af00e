// NumPy arrays at the boundary: checked once, then plain pointers.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
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
template <>
inline const char* type_name<float>() {
  return "float32";
}
template <>
inline const char* type_name<double>() {
  return "float64";
}
template <>
inline const char* type_name<std::uint8_t>() {
  return "uint8";
}
template <>
inline const char* type_name<std::int8_t>() {
  return "int8";
}
template <>
inline const char* type_name<std::int32_t>() {
  return "int32";
}
template <>
inline const char* type_name<std::int64_t>() {
  return "int64";
}
template <>
inline const char* type_name<std::uint32_t>() {
  return "uint32";
}
template <>
inline const char* type_name<std::uint64_t>() {
  return "uint64";
}

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

// A reference kept for as long as the process.
inline PyObject* numpy_name(const char* name) {
  nanobind::object value = nanobind::module_::import_("numpy").attr(name);
  return value.release().ptr();
}

// A new NumPy array to write into. Asking NumPy for the memory costs a third of wrapping our own, which single queries
// would feel.
template <class T>
class Result {
 public:
  template <class... Size>
  explicit Result(Size... shape) {
    static PyObject* const empty = numpy_name("empty");
    static PyObject* const type = numpy_name(type_name<T>());
    array_ = nanobind::handle(empty)(nanobind::make_tuple(shape...), nanobind::handle(type));
    Py_buffer view;
    if (PyObject_GetBuffer(array_.ptr(), &view, PyBUF_WRITABLE) != 0) nanobind::raise_python_error();
    data_ = static_cast<T*>(view.buf);
    PyBuffer_Release(&view);  // array_ keeps the memory
  }
  T* data() { return data_; }
  nanobind::object array() const { return array_; }

 private:
  nanobind::object array_;
  T* data_;
};

}  // namespace hushsum
