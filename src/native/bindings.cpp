#include <nanobind/nanobind.h>

#include "dispatch.hpp"

namespace nb = nanobind;

namespace hushsum {

void bind_count(nb::module_& module);
void bind_tables(nb::module_& module);
void bind_features(nb::module_& module);
void bind_grid(nb::module_& module);
void bind_noise(nb::module_& module);
void bind_rice(nb::module_& module);
void bind_threads(nb::module_& module);
#if defined(HUSHSUM_SANITIZE)
void bind_planted_bugs(nb::module_& module);
#endif

}  // namespace hushsum

NB_MODULE(_native, module) {
  module.doc() = "Hushsum's hot loops.";
#if defined(NDEBUG)
  nb::set_leak_warnings(false);  // what lives until the process ends is no news to a user
#endif
  module.def("clone", &hushsum::clone_name, "The instruction set the hot loops run with: baseline, v3 or v4.");
  hushsum::bind_tables(module);
  hushsum::bind_count(module);
  hushsum::bind_features(module);
  hushsum::bind_grid(module);
  hushsum::bind_noise(module);
  hushsum::bind_rice(module);
  hushsum::bind_threads(module);
#if defined(HUSHSUM_SANITIZE)
  hushsum::bind_planted_bugs(module);
#endif
}
