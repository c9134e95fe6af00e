#include <nanobind/nanobind.h>

#include "arrays.hpp"
#include "rice_code.hpp"
#include "python_signatures.hpp"

namespace nb = nanobind;

namespace hushsum {

namespace {

bool wide(const Array& values) { return values.dtype() == nb::dtype<std::int64_t>(); }

nb::bytes pack_integers(const Array& values, std::int64_t centre) {
  const std::vector<std::uint8_t> bytes =
      wide(values) ? rice_encode(checked<std::int64_t>(values, "values", {any_size}), values.size(), centre)
                   : rice_encode(checked<std::int32_t>(values, "values", {any_size}), values.size(), centre);
  return nb::bytes(bytes.data(), bytes.size());
}

bool unpack_integers(nb::bytes source, const WritableArray& values, std::int64_t centre) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(source.c_str());
  if (values.dtype() == nb::dtype<std::int64_t>())
    return rice_decode(bytes, source.size(), checked<std::int64_t>(values, "values", {any_size}), values.size(),
                       centre);
  return rice_decode(bytes, source.size(), checked<std::int32_t>(values, "values", {any_size}), values.size(), centre);
}

}  // namespace

void bind_rice(nb::module_& module) {
  module.def("pack_integers", &pack_integers, nb::arg("values").noconvert(), nb::arg("centre"),
             "Rice codes of int32 or int64 values around a centre.",
             nb::sig(signature("def pack_integers(values: Table, centre: int) -> bytes")));
  module.def("unpack_integers", &unpack_integers, nb::arg("source"), nb::arg("values").noconvert(), nb::arg("centre"),
             "Fill values from Rice codes; false if the bytes are not the code of that many values.",
             nb::sig(signature("def unpack_integers(source: bytes, values: Table, centre: int) -> bool")));
}

}  // namespace hushsum
