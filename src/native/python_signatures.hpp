// Python signatures with exact array types, for the stub file that nanobind generates (src/hushsum/_native.pyi).
#pragma once

#include <deque>
#include <string>

namespace hushsum {

// A signature in which Array[x] stands for numpy.typing.NDArray[numpy.x], and Table for an int32 or an int64 array.
// Lives as long as the process, as bindings require.
inline const char* signature(std::string text) {
  static std::deque<std::string> kept;
  const auto replace_all = [&text](const std::string& old, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += by.size())
      text.replace(at, old.size(), by);
  };
  replace_all(": Table", ": Array[int32] | Array[int64]");
  replace_all("Array[", "numpy.typing.NDArray[numpy.");
  return kept.emplace_back(std::move(text)).c_str();
}

}  // namespace hushsum
