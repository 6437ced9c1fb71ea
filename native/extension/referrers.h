// What keeps memory alive: chains of references from modules and running functions to the objects
// that sampled blocks belong to.
#pragma once

#include "tachograph/api.h"

namespace tachograph::referrers {

// Searches, and writes what it finds. With the GIL, and not within a garbage collection. Calls no
// code of the program's, makes no objects, and keeps none alive.
void search(const tg_api* api);

}  // namespace tachograph::referrers
