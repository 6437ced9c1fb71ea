// Recording an interpreter that the extension module does not fit: CPU time, waits, memory and
// copies without Python stacks.
#pragma once

#include "process/python.h"

namespace tachograph::native_only {

// Gives the names of functions, for Python code, to `globals`: record_natively(facts), which starts
// recording ("key=value" lines; returns whether it could), and what os.register_at_fork is to be
// told: before_fork, after_fork_in_parent, after_fork_in_child.
void offer(const python::Api& python, python::Globals* globals);

}  // namespace tachograph::native_only
