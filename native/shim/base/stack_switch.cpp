#include "base/stack_switch.h"

#include "tachograph/call_on.h"

namespace tachograph::stack_switch {

void call_on(void* top, void (*function)(void*), void* argument) {
    tachograph_call_on(top, function, argument);
}

bool holds(uint64_t pc) {
    return pc - reinterpret_cast<uint64_t>(tachograph_call_on_other) <
           static_cast<uint64_t>(tachograph_call_on_back - tachograph_call_on_other);
}

}  // namespace tachograph::stack_switch
