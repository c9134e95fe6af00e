// The one way in which loops run on several threads: a pool that lasts as long as the process. Each part of a call owns
// a range of tasks, and only integers are added across parts, so no result depends on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hushsum {

struct Range {
  std::size_t begin, end;
};

// At most the requested number of threads, and none for less work than it costs to wake one.
inline std::size_t useful_threads(std::size_t tasks, std::size_t cells, std::size_t threads) {
  constexpr std::size_t least_cells = 32'768;
  return std::max<std::size_t>(1, std::min({threads, tasks, cells / least_cells}));
}

// Calls part(context, 0), ..., part(context, parts - 1), each once, on the caller's thread and on threads of the pool,
// and returns when all have returned. The caller takes parts too, so a call never waits for a thread to become free:
// any number of threads may call at once, and parts may themselves call. Of the exceptions that parts throw, the first
// is thrown again here, after the last part.
void run_parts(std::size_t parts, const void* context, void (*part)(const void* context, std::size_t index));

// Ends the pool's threads, when their parts are done; later calls run on their caller's thread alone.
void stop_threads();

// Runs work(range, part) over a partition of [0, tasks) into `many` ranges. Work on tables does not throw: whatever can
// fail comes before, so that no row of a table is ever counted without the others.
template <class Work>
void run_parallel(std::size_t tasks, std::size_t many, const Work& work) {
  struct Call {
    std::size_t tasks, many;
    const Work& work;
  };
  const Call call{tasks, many, work};
  if (many == 1) return work(Range{0, tasks}, 0);
  run_parts(many, &call, [](const void* context, std::size_t t) {
    const Call& of = *static_cast<const Call*>(context);
    of.work(Range{of.tasks * t / of.many, of.tasks * (t + 1) / of.many}, t);
  });
}

}  // namespace hushsum
