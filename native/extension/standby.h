// The standby: a thread that sleeps in the kernel until a process of the same user asks something
// of this one, through a socket in the abstract namespace.
#pragma once

#include <Python.h>

#include <optional>
#include <string>

struct tg_api;

namespace tachograph::standby {

// Listens at "tachograph-standby-PID-RANDOM" from now on. `answer(request, held)` is called with
// the GIL: `request` are bytes that end with a new line, None if a client that was held has gone;
// `held` is what it was held for, None for nothing. It returns the answer's bytes and what the
// client is held for from now on: one at a time is, until it goes. `once`: until the last client
// has gone. What is wrong, if anything is.
std::optional<std::string> begin(PyObject* answer, bool once);

// Whether it listens.
bool is_on();

// Our thread is none of the program's: for a recording that begins.
void leave_out(const tg_api* api);

// How long a thread waits for the GIL, in us, as the program has it: known before it is made short
// elsewhere, and put back in the child of a fork that comes meanwhile.
void is_switch_interval(unsigned long us);

// Around a fork by the interpreter, which holds the GIL. The child gets a socket of its own.
void before_fork();
bool left_for_fork();
void come_back();
void begin_in_child();

}  // namespace tachograph::standby
