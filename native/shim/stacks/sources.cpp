#include "stacks/sources.h"

// The linker's marks around the section of the table.
extern "C" const tachograph::Source* const __start_tg_sources[]
    __attribute__((visibility("hidden")));
extern "C" const tachograph::Source* const __stop_tg_sources[]
    __attribute__((visibility("hidden")));

namespace tachograph::sources {
namespace {

template <typename F, typename... A>
void call(F Source::* function, A... arguments) {
    for (const Source* const* at = __start_tg_sources; at != __stop_tg_sources; ++at)
        if ((*at)->*function) ((*at)->*function)(arguments...);
}

// The first answer that is not `good`.
template <typename R, typename F, typename... A>
R first_bad(R good, F Source::* function, A&... arguments) {
    for (const Source* const* at = __start_tg_sources; at != __stop_tg_sources; ++at) {
        if (!((*at)->*function)) continue;
        const R answer = ((*at)->*function)(arguments...);
        if (answer != good) return answer;
    }
    return good;
}

}  // namespace

bool prepare(const tg_options& options) { return first_bad(true, &Source::prepare, options); }
int start() { return first_bad(0, &Source::start); }
void pause(bool yes) { call(&Source::pause, yes); }

void sampled(const tg_walk& found, uint64_t pc) {
    for (const Source* const* at = __start_tg_sources; at != __stop_tg_sources; ++at)
        if ((*at)->sampled) (*at)->sampled(found, pc);
}

bool tick(int64_t now_ns) {
    bool calm = true;
    for (const Source* const* at = __start_tg_sources; at != __stop_tg_sources; ++at)
        if ((*at)->tick && !(*at)->tick(now_ns)) calm = false;
    return calm;
}

bool keep() { return first_bad(true, &Source::keep); }
void flush() { call(&Source::flush); }
void finish() { call(&Source::finish); }
void stop() { call(&Source::stop); }
void watch(threads::Thread* thread) { call(&Source::watch, thread); }
void unwatch(threads::Thread* thread) { call(&Source::unwatch, thread); }
void enter(threads::Thread* own, bool known) { call(&Source::enter, own, known); }
void leave(threads::Thread* own) { call(&Source::leave, own); }
void before_fork() { call(&Source::before_fork); }
void after_fork(bool in_child) { call(&Source::after_fork, in_child); }
void forget() { call(&Source::forget); }

}  // namespace tachograph::sources
