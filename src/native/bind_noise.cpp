// Keys, streams and noise for Python: the key lives and dies here, chunks are shared among threads.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "dispatch.hpp"
#include "python_signatures.hpp"
#include "threads.hpp"

namespace nb = nanobind;

namespace hushsum {

namespace {

// 256 secret bits that Python never sees. Bound to the process that made it: a child would repeat the parent's noise.
class StreamKey {
 public:
  StreamKey() : process_(getpid()) {
    if (getentropy(words_, sizeof words_) != 0) throw std::runtime_error("the operating system gave no random bytes");
  }
  explicit StreamKey(nb::bytes bytes) : process_(getpid()) {
    if (bytes.size() != sizeof words_) throw std::invalid_argument("a key has 32 bytes");
    std::memcpy(words_, bytes.c_str(), sizeof words_);
  }
  StreamKey(const StreamKey&) = delete;
  StreamKey& operator=(const StreamKey&) = delete;
  ~StreamKey() { clear(); }

  void clear() {
    wipe(words_, sizeof words_);
    usable_ = false;
  }
  bool usable() const { return usable_ && getpid() == process_; }
  const uint32_t* words() const {
    if (!usable()) throw std::runtime_error("the key was wiped, or belongs to another process");
    return words_;
  }

 private:
  uint32_t words_[8];
  pid_t process_;
  bool usable_ = true;
};

nb::bytes keystream(const StreamKey& key, uint32_t nonce0, uint32_t nonce1, uint32_t nonce2, uint32_t counter,
                    uint32_t blocks) {
  std::vector<unsigned char> bytes(size_t{blocks} * 64);
  uint32_t group[group_words * 2];
  for (uint32_t first = 0; first < blocks; first += group_blocks) {
    simd_loops().keystream_group(key.words(), Nonce{{nonce0, nonce1, nonce2}}, counter + first, group);
    for (uint32_t block = first; block < std::min(blocks, first + group_blocks); ++block) {
      for (uint32_t word = 0; word < 16; ++word) {
        std::memcpy(&bytes[size_t{block} * 64 + word * 4], &group[word * group_blocks + block - first], 4);
      }
    }
  }
  nb::bytes result(bytes.data(), bytes.size());
  wipe(group, sizeof group);
  wipe(bytes.data(), bytes.size());
  return result;
}

std::tuple<uint32_t, uint32_t, uint32_t> extension_nonce(uint32_t draw, bool acceptance, uint64_t index) {
  const Nonce nonce = nonce_of(draw, acceptance ? purpose_more_acceptance : purpose_more_magnitude, index);
  return {nonce.words[0], nonce.words[1], nonce.words[2]};
}

// Asks Python for the exact decision; keeps the first exception of any thread.
struct PythonResolver {
  nb::callable callable;
  std::mutex mutex{};
  std::exception_ptr error{};

  static Answer decide(void* context, uint64_t index, uint64_t magnitude_word, uint32_t acceptance_word,
                       int64_t* value) {
    auto& self = *static_cast<PythonResolver*>(context);
    nb::gil_scoped_acquire gil;
    try {
      const nb::object answer = self.callable(index, magnitude_word, acceptance_word);
      if (answer.is_none()) return Answer::rejected;
      *value = nb::cast<int64_t>(answer);
      return Answer::value;
    } catch (...) {
      const std::lock_guard lock(self.mutex);
      if (!self.error) self.error = std::current_exception();
      return Answer::failed;
    }
  }

  [[noreturn]] void raise() {
    const std::lock_guard lock(mutex);
    if (error) std::rethrow_exception(error);
    throw std::runtime_error("the noise stream ran out");
  }
};

// A draw in progress keeps its own copy: a key wiped by another thread must not become the key zero.
struct KeyCopy {
  uint32_t words[8];
  explicit KeyCopy(const uint32_t* key) { std::memcpy(words, key, sizeof words); }
  KeyCopy(const KeyCopy&) = delete;
  KeyCopy& operator=(const KeyCopy&) = delete;
  ~KeyCopy() { wipe(words, sizeof words); }
};

using Output = nb::ndarray<int64_t, nb::numpy, nb::ndim<1>, nb::c_contig>;

template <class Shape, class Chunk>
void fill(const StreamKey& key, uint32_t draw, const Output& out, const Shape& shape, Chunk chunk_function, int threads,
          nb::callable decide) {
  if (draw >> 24 != 0) throw std::invalid_argument("a draw number has 24 bits");
  KeyCopy copy(key.words());
  const StreamId id{copy.words, draw};
  const size_t size = out.shape(0);
  const size_t chunks = (size + chunk_draws - 1) / chunk_draws;
  if (chunks >> 32 != 0) throw std::invalid_argument("a chunk number has 32 bits");
  int64_t* const values = out.data();
  PythonResolver python{std::move(decide)};
  const Resolver resolver{&python, PythonResolver::decide};
  std::atomic<bool> ok{true};
  try {
    const nb::gil_scoped_release no_gil;
    const size_t many = useful_threads(chunks, size, static_cast<size_t>(std::max(threads, 1)));
    run_parallel(chunks, many, [&](Range own, size_t) {
      for (size_t chunk = own.begin; chunk < own.end && ok.load(std::memory_order_relaxed); ++chunk) {
        const size_t start = chunk * chunk_draws;
        const auto length = static_cast<uint32_t>(std::min<size_t>(chunk_draws, size - start));
        if (chunk_function(id, shape, chunk, values + start, length, resolver)) continue;
        ok = false;
        python.raise();
      }
    });
  } catch (...) {
    std::fill(values, values + size, 0);
    throw;
  }
}

}  // namespace

void bind_noise(nb::module_& module) {
  nb::class_<StreamKey>(module, "StreamKey", "256 secret bits from the operating system, or given ones for tests.")
      .def(nb::init<>())
      .def(nb::init<nb::bytes>(), nb::arg("bytes"))
      .def("clear", &StreamKey::clear, "Wipes the key; every later use fails.")
      .def_prop_ro("usable", &StreamKey::usable, "False once wiped, and in a child process.")
      .def("keystream", &keystream, nb::arg("nonce0"), nb::arg("nonce1"), nb::arg("nonce2"), nb::arg("counter"),
           nb::arg("blocks"), "Blocks of 64 bytes of the ChaCha20 keystream (RFC 8439).");
  module.attr("NOISE_CHUNK") = chunk_draws;
  module.def("extension_nonce", &extension_nonce, nb::arg("draw"), nb::arg("acceptance"), nb::arg("index"),
             "The nonce whose stream continues the bits of one draw.");
  module.def(
      "fill_laplace",
      [](const StreamKey& key, uint32_t draw, Output out, double scale, double offset, double widen, int threads,
         nb::callable decide) {
        fill(key, draw, out, LaplaceShape{.scale = scale, .offset = offset, .widen = widen}, simd_loops().laplace_chunk,
             threads, std::move(decide));
      },
      nb::arg("key"), nb::arg("draw"), nb::arg("out").noconvert(), nb::arg("scale"), nb::arg("offset"),
      nb::arg("widen"), nb::arg("threads"), nb::arg("decide"), "Fills out with discrete Laplace draws.",
      nb::sig(
          signature("def fill_laplace(key: StreamKey, draw: int, out: Array[int64], scale: float, offset: float, "
                    "widen: float, threads: int, decide: collections.abc.Callable[[int, int, int], int]) -> None")));
  module.def(
      "fill_gaussian",
      [](const StreamKey& key, uint32_t draw, Output out, double scale, double offset, double centre, double rate,
         bool narrow, double widen, int threads, nb::callable decide) {
        const GaussianShape shape{.proposal = {.scale = scale, .offset = offset, .widen = widen},
                                  .centre = centre,
                                  .rate = rate,
                                  .narrow = narrow};
        fill(key, draw, out, shape, simd_loops().gaussian_chunk, threads, std::move(decide));
      },
      nb::arg("key"), nb::arg("draw"), nb::arg("out").noconvert(), nb::arg("scale"), nb::arg("offset"),
      nb::arg("centre"), nb::arg("rate"), nb::arg("narrow"), nb::arg("widen"), nb::arg("threads"), nb::arg("decide"),
      "Fills out with discrete Gaussian draws.",
      nb::sig(signature("def fill_gaussian(key: StreamKey, draw: int, out: Array[int64], scale: float, offset: float, "
                        "centre: float, rate: float, narrow: bool, widen: float, threads: int, decide: "
                        "collections.abc.Callable[[int, int, int], int | None]) -> None")));
}

}  // namespace hushsum
