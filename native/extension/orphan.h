// Starts a program that is not a child of this process.
#pragma once

#include <string>
#include <vector>

namespace tachograph {

// The process id of the program `arguments[0]` (a path), which has `environment`, `descriptors` as
// its descriptors from 3 on, /dev/null before them and no others, a session of its own, and no
// signal blocked or handled. No wait() of this process ever sees it, and no handler of a fork runs.
// Throws std::runtime_error.
int start_orphan(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& environment, const std::vector<int>& descriptors);

}  // namespace tachograph
