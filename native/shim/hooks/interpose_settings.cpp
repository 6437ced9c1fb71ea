// How Python code of ours asks, at an interpreter's start, whether it is recorded and how: with
// os.strerror and numbers that are not errors. It costs an interpreter that is not recorded
// nothing, and shows in no environment.
#include "base/large_data.h"
#include "hooks/interposed.h"
#include "memory/heap.h"
#include "spool/settings.h"

#include <atomic>
#include <cstdio>
#include <cstring>

namespace tachograph {
namespace {

// Known to recorder/tachograph.pth and recorder/arm.py.
constexpr int kAsk = 0x54414348;  // "TACH"
constexpr int kTake = kAsk + 1;
constexpr int kDecline = kAsk + 2;  // they were taken, and this process is not recorded

struct State {
    char* (*strerror)(int) = nullptr;
    char* (*strerror_r)(int, char*, size_t) = nullptr;
    std::atomic<bool> read_by_python{false};
    char answer[17 * 1024] = {};
};
constinit TG_LARGE_ZEROS State g;

// To one of our numbers; null: to none.
char* answer(int number) {
    if (number < kAsk || number > kDecline) return nullptr;
    if (number == kDecline && settings::are_read_by_python()) heap::expect_nothing();
    if (!settings::are_set() || settings::are_read_by_python()) return nullptr;
    static char yes[] = "tachograph";
    if (number == kAsk) return yes;
    // Given once: a subinterpreter is part of a process that is recorded.
    if (g.read_by_python.exchange(true)) return nullptr;
    snprintf(g.answer, sizeof g.answer, "%s\n%s", settings::spool(), settings::config());
    return g.answer;
}

}  // namespace

bool settings::are_read_by_python() { return g.read_by_python.load(std::memory_order_acquire); }

}  // namespace tachograph

using namespace tachograph;

TG_EXPORT char* strerror(int number) noexcept {
    char* found = answer(number);
    return found ? found : next_function(&g.strerror, "strerror")(number);
}

// What os.strerror calls from CPython 3.14 on; the GNU one, which returns the text.
TG_EXPORT char* strerror_r(int number, char* buffer, size_t size) noexcept {
    char* found = answer(number);
    return found ? found : next_function(&g.strerror_r, "strerror_r")(number, buffer, size);
}
