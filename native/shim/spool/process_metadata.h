// What is told of the process as META records: kept, so that a forked child can tell it again.
#pragma once

namespace tachograph::process_metadata {

// Writes a record. False if there is no room, or the text is too long.
bool tell(const char* key, const char* value);
// The same of this process alone: a forked child does not tell it again.
bool tell_of_this(const char* key, const char* value);
// In a forked child with a spool of its own.
void tell_again();
// The process is not recorded any more.
void forget();

}  // namespace tachograph::process_metadata
