// Bugs on purpose, compiled only under the sanitizers: a run that does not catch these would catch nothing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <thread>

namespace nb = nanobind;

namespace hushsum {

using Cells = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void bind_planted_bugs(nb::module_& module) {
  module.def(
      "planted_overrun", [](Cells cells) { cells.data()[cells.shape(0)] = 1; }, nb::arg("cells"),
      "Write one element beyond an array.");
  module.def("planted_overflow", [](int value) { return value + 1; }, nb::arg("value"), "Add 1 without a check.");
  module.def(
      "planted_race",
      [](Cells cells) {
        const auto count = [&] { ++cells.data()[0]; };
        std::thread other(count);
        count();
        other.join();
      },
      nb::arg("cells"), "Increment a cell in two threads at once.");
}

}  // namespace hushsum
