#include <nanobind/nanobind.h>

#include <cstdlib>
#include <cstring>

#include "dispatch.hpp"

namespace nb = nanobind;

namespace hushsum {

void bind_count(nb::module_& module);
void bind_features(nb::module_& module);
void bind_noise(nb::module_& module);
void bind_pack(nb::module_& module);

namespace {

Clone detect_clone() {
#if defined(HUSHSUM_X86_CLONES)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  const char* forced = std::getenv("HUSHSUM_FORCE_CLONE");
  if (forced != nullptr && std::strcmp(forced, "baseline") == 0) return Clone::baseline;
  if (forced != nullptr && std::strcmp(forced, "v3") == 0 && v3) return Clone::v3;
  return v4 ? Clone::v4 : v3 ? Clone::v3 : Clone::baseline;
#else
  return Clone::baseline;
#endif
}

}  // namespace

Clone chosen_clone() {
  static const Clone clone = detect_clone();
  return clone;
}

const char* clone_name(Clone clone) {
  switch (clone) {
    case Clone::v4:
      return "v4";
    case Clone::v3:
      return "v3";
    default:
      return "baseline";
  }
}

}  // namespace hushsum

NB_MODULE(_native, module) {
  module.doc() = "Hushsum's hot loops.";
#if defined(NDEBUG)
  nb::set_leak_warnings(false);  // what lives until the process ends is no news to a user
#endif
  module.def(
      "clone", [] { return hushsum::clone_name(hushsum::chosen_clone()); },
      "The instruction set the hot loops run with: baseline, v3 or v4.");
  hushsum::bind_count(module);
  hushsum::bind_features(module);
  hushsum::bind_noise(module);
  hushsum::bind_pack(module);
}
