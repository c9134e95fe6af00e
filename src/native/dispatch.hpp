// Which clone of the hot loops this processor runs. HUSHSUM_FORCE_CLONE in the environment (baseline, v3, v4) overrides
// the choice, for tests that compare the clones bit for bit.
#pragma once

namespace hushsum {

enum class Clone { baseline, v3, v4 };

Clone chosen_clone();
const char* clone_name(Clone clone);

}  // namespace hushsum
