// The generations of the tables of stacks, code objects and native stacks: when one is nearly full,
// or a window ends, another begins, with ids behind those of the one before.
//
// Two tables of each kind take turns. A thread that works in one has pinned it: it is emptied when
// no thread does any more, and only then may it be the next one.
#pragma once

#include <cstdint>

namespace tachograph::generations {

inline constexpr uint32_t kPlaces = 2;

// Keeps the present generation in place for the calling thread, whose handlers then work in it,
// too. False if it had one pinned already: only who got true unpins. Safe in signal handlers.
bool pin();
void unpin();

// Which of two tables the calling thread works in.
uint32_t place();

// Helper thread: the table of the present generation, another one from now on, and whether a thread
// works in one.
uint32_t present();
void change(uint32_t place);
bool is_pinned(uint32_t place);

// In a forked child, whose only thread has nothing pinned.
void forget();

}  // namespace tachograph::generations
