// Files of the spool, in the very folder that the recording command made.
//
// Another user who owns a folder above it may put a link in its place while a process of root's is
// recorded: its path then leads into a folder of root's.
#pragma once

namespace tachograph::spool_folder {

// Opens a file by a path in the spool. A descriptor or a negative errno: -ENOENT also where the
// path leads into another folder.
long open(const char* path, int flags);
// Removes it, but from no other folder.
void remove(const char* path);

}  // namespace tachograph::spool_folder
