// The pool's end with the interpreter, and what it costs to hand work to threads.
#include <nanobind/nanobind.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "arrays.hpp"
#include "python_signatures.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace hushsum {

namespace {

std::size_t at_least_one(const char* name, std::int64_t value) {
  require(value >= 1, std::string(name) + " must be at least 1, got " + std::to_string(value));
  return static_cast<std::size_t>(value);
}

// Runs through a chain of `steps` products that no compiler can shorten.
void run_chain(std::size_t steps, std::atomic<std::uint64_t>& total) {
  std::uint64_t value = 1;
  for (std::size_t i = 0; i < steps; ++i) value = value * 6364136223846793005u + i;
  total += value;
}

std::uint64_t pool_calls(std::int64_t parts, std::int64_t steps, std::int64_t calls) {
  const std::size_t many = at_least_one("parts", parts), each = at_least_one("steps", steps),
                    repeats = at_least_one("calls", calls);
  const nb::gil_scoped_release released;
  std::atomic<std::uint64_t> total{0};
  for (std::size_t i = 0; i < repeats; ++i)
    run_parallel(many, many, [&](Range, std::size_t) { run_chain(each, total); });
  return total;
}

std::uint64_t thread_starts(std::int64_t parts, std::int64_t steps, std::int64_t calls) {
  const std::size_t many = at_least_one("parts", parts), each = at_least_one("steps", steps),
                    repeats = at_least_one("calls", calls);
  const nb::gil_scoped_release released;
  std::atomic<std::uint64_t> total{0};
  for (std::size_t i = 0; i < repeats; ++i) {
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < many; ++t) others.emplace_back([&] { run_chain(each, total); });
    run_chain(each, total);
    for (std::thread& other : others) other.join();
  }
  return total;
}

}  // namespace

void bind_threads(nb::module_& module) {
  module.def(
      "pool_calls", &pool_calls, nb::arg("parts"), nb::arg("steps"), nb::arg("calls"),
      "Hand `parts` chains of `steps` products (about a nanosecond each) to the pool, `calls` times; a yardstick.",
      nb::sig(signature("def pool_calls(parts: int, steps: int, calls: int) -> int")));
  module.def("thread_starts", &thread_starts, nb::arg("parts"), nb::arg("steps"), nb::arg("calls"),
             "The same on threads that start and end with every call, and the same result.",
             nb::sig(signature("def thread_starts(parts: int, steps: int, calls: int) -> int")));
  // Before the interpreter ends: a part may need it to finish.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    const nb::gil_scoped_release released;
    stop_threads();
  }));
}

}  // namespace hushsum
