// The wait sampler: off-CPU time of every thread, on its Python stack, without a signal to anyone.
//
// A thread's off-CPU time between two looks is wall time less the advance of its CPU clock, which
// is exact; the sampling only decides which stack it belongs to. A thread whose clock has not moved
// since its stack was read is still there, so its open span grows in place.
#pragma once

#include <cstdint>

namespace tachograph::waits {

// Looks once at the threads. True if nothing changed: each either ran all the time or stood still.
bool tick(int64_t now_ns);
void close_all();

// In a forked child, before the threads are forgotten.
void forget();

}  // namespace tachograph::waits
