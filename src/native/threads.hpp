// The one way in which loops run on several threads: each thread owns a range of tasks, so nothing is merged and no
// result depends on their number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace hushsum {

struct Range {
  std::size_t begin, end;
};

// At most the requested number of threads, and none for less work than it costs to start one.
inline std::size_t useful_threads(std::size_t tasks, std::size_t cells, std::size_t threads) {
  constexpr std::size_t least_cells = 32'768;
  return std::max<std::size_t>(1, std::min({threads, tasks, cells / least_cells}));
}

// Runs work(range, worker) over a partition of [0, tasks), one worker on the caller's thread. The work may not throw:
// whatever can fail comes before, so that no row of a table is ever counted without the others.
template <class Work>
void run_parallel(std::size_t tasks, std::size_t many, const Work& work) {
  const auto run = [&](std::size_t t) noexcept { work(Range{tasks * t / many, tasks * (t + 1) / many}, t); };
  std::vector<std::thread> others;
  others.reserve(many - 1);
  for (std::size_t t = 1; t < many; ++t) {
    try {
      others.emplace_back(run, t);
    } catch (const std::system_error&) {
      run(t);
    }
  }
  run(0);
  for (std::thread& other : others) other.join();
}

}  // namespace hushsum
