// The sampled blocks that no row of the log tells of yet, in a table behind the control file.
//
// A block's row is written when it is a second old (blocks.h), which a killed process does not live
// to see. So each has a place in the spool for as long as it waits: the table takes the same room
// however long the program runs, and a reader takes from it what a process that never ended left
// there.
#pragma once

#include "memory/block.h"

#include <cstdint>

namespace tachograph::pending_blocks {

inline constexpr uint16_t kNoPlace = 0;

// Where the block waits from now on. A block for which there is no room is counted while it waits.
uint16_t keep(const blocks::Block& what, double weight);
// It has a row now, is dead, or is not followed any more.
void drop(uint16_t place);
// In a forked child: its own table is empty.
void forget();

}  // namespace tachograph::pending_blocks
