// Arming where tachograph.pth does not run: python -S, another virtual environment, an interpreter
// of another version, a program that embeds one.
//
// An audit hook (PEP 578), put there before the interpreter is initialised, is called on its own
// thread just before the program's first line. It is taken out again at once.
#pragma once

namespace tachograph::audit {

// In the library's constructor, in a program of a recording. False if it has no CPython in it.
bool watch();

}  // namespace tachograph::audit
