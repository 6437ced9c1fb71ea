// Python's name for a thread that is about to be created.
#pragma once

#include <cstddef>
#include <string>

namespace tachograph {

// Runs in pthread_create, in the creating thread. Writes UTF-8, returns its length, 0 if the caller
// is not threading.Thread.start or does not hold the GIL.
size_t name_of_starting_thread(char* buffer, size_t size);

// Python's name for the calling thread, which holds the GIL: the main thread's if it is not known.
std::string name_of_this_thread();

}  // namespace tachograph
