// The import tables of what is loaded: whether its calls of malloc, memcpy and their kin come to
// our hooks, or go where they would go without us.
//
// A program that is not recorded pays nothing for the hooks then, in all that was loaded until now.
// What it loads later is bound to the hooks, as the loader finds them first.
#pragma once

namespace tachograph::import_tables {

// From now on they go past the hooks. Nothing is changed where another library's definitions come
// before ours, or where the loader itself was asked to watch calls (LD_AUDIT, LD_PROFILE).
void pass_hooks();
// They come to the hooks again.
void meet_hooks();

}  // namespace tachograph::import_tables
