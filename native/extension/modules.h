// The names of a module of the main interpreter, in sys.modules, read from outside.
#pragma once

#include "compat.h"
#include "tachograph/api.h"

#include <atomic>
#include <cstdint>

namespace tachograph {

// Programs import much and may never import this one: no entry of sys.modules is looked at twice,
// but for the last one, which may have been in the making.
class ModuleSearch {
  public:
    explicit constexpr ModuleSearch(const char* name) : name_(name) {}

    // Its dict; NULL if it was not imported.
    const uint8_t* names(const tg_api* api, const tg_offsets* offsets);

  private:
    const char* name_;
    // Where to look next: the address of the keys of sys.modules, a multiple of 8 below 2^47, and
    // in the other 20 bits how many of them were seen.
    std::atomic<uint64_t> searched_{0};
};

}  // namespace tachograph
