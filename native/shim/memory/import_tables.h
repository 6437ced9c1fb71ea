// The import tables of what is loaded: whether its calls of malloc, memcpy and their kin come to
// our hooks, or go where they would go without us.
//
// A program that is not recorded pays nothing for the hooks then, in all that was loaded until now.
// What it loads later is bound to the hooks, as the loader finds them first.
#pragma once

namespace tachograph::import_tables {

// From now on they go past the hooks. Nothing is changed where another library's definitions come
// before ours, or where the loader itself was asked to watch calls (LD_AUDIT, LD_PROFILE).
// `all`: those that give memory back, too.
void pass_hooks(bool all);
// They come to the hooks again.
void meet_hooks();

// In a preloaded process: who looks for one of the C library's functions by its name and finds what
// our hook stands before, as with ctypes, gets the hook from now on. In what is loaded now, and in
// Python's extension modules that are loaded later.
void meet_lookups();

// In a process that has loaded this library with dlopen, where the loader finds the C library's
// definitions first: the hooks of threads, signals, programs and rights are met from now on, in all
// that is loaded and in what is loaded later, and those above can be. Where a definition is neither
// ours nor the C library's, it stays; and so do calls that were not bound yet, but for those of the
// program itself, of the libraries that it was linked with, and of libpython.
void attach();
// None is met any more.
void detach();

}  // namespace tachograph::import_tables
