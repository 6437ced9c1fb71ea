// When a table of stacks, code objects or native stacks is nearly full, or a window ends, another
// generation begins.
#pragma once

#include <cstdint>

namespace tachograph::generation_turns {

// Helper thread: another generation if `window_ends` or a table is nearly full, as soon as that is
// possible; tables that are left are emptied.
void maintain(int64_t now_ns, bool window_ends);

// Ids of the generation before the last one may be on their way into a record for so long.
inline constexpr int64_t kLeastNs = 5'000'000'000;

// In a forked child: tables are emptied by their owners.
void forget();

}  // namespace tachograph::generation_turns
