#include "dispatch.hpp"

#include <cstdlib>
#include <cstring>

namespace hushsum {

namespace baseline {
extern const SimdLoops loops;
}
#if defined(HUSHSUM_X86_CLONES)
namespace v3 {
extern const SimdLoops loops;
}
namespace v4 {
extern const SimdLoops loops;
}
#endif

namespace {

struct Clone {
  const char* name;
  const SimdLoops& loops;
};

Clone detect() {
#if defined(HUSHSUM_X86_CLONES)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  const char* forced = std::getenv("HUSHSUM_FORCE_CLONE");
  const auto allowed = [&](const char* name) { return forced == nullptr || std::strcmp(forced, name) == 0; };
  const bool known = forced != nullptr && (allowed("baseline") || (allowed("v3") && v3) || (allowed("v4") && v4));
  if (!known) forced = nullptr;
  if (v4 && allowed("v4")) return {"v4", v4::loops};
  if (v3 && allowed("v3")) return {"v3", v3::loops};
#endif
  return {"baseline", baseline::loops};
}

const Clone& chosen() {
  static const Clone clone = detect();
  return clone;
}

}  // namespace

const SimdLoops& simd_loops() { return chosen().loops; }

const char* clone_name() { return chosen().name; }

}  // namespace hushsum
