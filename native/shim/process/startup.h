// What the process was started with, for the list of processes.
#pragma once

namespace tachograph::startup {

// Lists this process in the log of the spool that settings.h names.
void list();

}  // namespace tachograph::startup
