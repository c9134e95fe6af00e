#include "threads.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace hushsum {

namespace {

// One call of run_parts, on its caller's stack. All but the first three fields are guarded by the pool's mutex.
struct Job {
  const std::size_t parts;
  const void* const context;
  void (*const part)(const void*, std::size_t);
  std::size_t next = 0;  // the first part that nobody has taken
  std::size_t unfinished = parts;
  std::exception_ptr error{};
  std::condition_variable done{};
  Job* following = nullptr;
};

class Pool {
 public:
  void run(Job& job) {
    std::unique_lock lock(mutex_);
    grow(job.parts - 1);
    const std::size_t helpers = std::min(job.parts - 1, threads_.size());
    if (helpers > 0) {
      (last_ == nullptr ? first_ : last_->following) = &job;
      last_ = &job;
    }
    for (std::size_t i = 0; i < helpers; ++i) wake_.notify_one();
    while (job.next < job.parts) take_part(job, lock);
    job.done.wait(lock, [&] { return job.unfinished == 0; });
    if (job.error) std::rethrow_exception(job.error);
  }

  void stop() {
    std::vector<std::thread> ending;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      ending.swap(threads_);
    }
    wake_.notify_all();
    for (std::thread& thread : ending) thread.join();
  }

 private:
  // As many threads as were ever useful at once, but no more than the processor runs beside the caller.
  void grow(std::size_t helpers) {
    helpers = std::min(helpers, processors_ - 1);
    if (stopped_ || threads_.size() >= helpers) return;
    // Signals are for Python's threads: a handler here would interrupt none of its calls.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      while (threads_.size() < helpers) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // Those that started, and the caller, do the work.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopped_ || first_ != nullptr; });
      if (first_ == nullptr) return;
      take_part(*first_, lock);
    }
  }

  // Takes one part of a job that has one left, with the mutex released while it runs.
  void take_part(Job& job, std::unique_lock<std::mutex>& lock) {
    const std::size_t index = job.next++;
    if (job.next == job.parts) forget(job);
    lock.unlock();
    std::exception_ptr error;
    try {
      job.part(job.context, index);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !job.error) job.error = std::move(error);
    // The job is alive until its caller has the mutex and finds nothing unfinished.
    if (--job.unfinished == 0) job.done.notify_one();
  }

  void forget(const Job& job) {
    Job* before = nullptr;
    for (Job* each = first_; each != nullptr; before = each, each = each->following) {
      if (each != &job) continue;
      (before == nullptr ? first_ : before->following) = each->following;
      if (last_ == each) last_ = before;
      return;
    }
  }

  const std::size_t processors_ = std::max(1u, std::thread::hardware_concurrency());
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> threads_;
  Job* first_ = nullptr;  // the jobs with parts that nobody has taken, oldest first
  Job* last_ = nullptr;
  bool stopped_ = false;
};

// A child of fork has the memory of the pool and none of its threads, and a mutex that one of them may have held. It
// leaves all of it where it is and makes another. So a fork waits for nothing, and what other threads compute in the
// parent goes on there.
std::atomic<Pool*> current{nullptr};

// When this library is loaded, which is before any thread of the pool.
[[maybe_unused]] const int at_fork =
    pthread_atfork(nullptr, nullptr, [] { current.store(nullptr, std::memory_order_relaxed); });

Pool& pool() {
  Pool* found = current.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto* made = new Pool;  // never deleted: threads that outlive main may still call
  if (current.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *found;
}

}  // namespace

void run_parts(std::size_t parts, const void* context, void (*part)(const void*, std::size_t)) {
  if (parts == 0) return;
  Job job{.parts = parts, .context = context, .part = part};
  pool().run(job);
}

void stop_threads() { pool().stop(); }

}  // namespace hushsum
