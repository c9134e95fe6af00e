#include <nanobind/nanobind.h>

namespace hushsum {

void bind_noise(nanobind::module_&) {}

}  // namespace hushsum
