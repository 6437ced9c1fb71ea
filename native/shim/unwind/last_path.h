// The rules that the last walk of a thread took, in their order: most of a path is as it was. Out
// of cold caches they come as one stretch of memory, where each place of the rule cache is a line,
// and often a page, of its own.
#pragma once

#include "unwind/rule_cache.h"

#include <cstdint>

namespace tachograph::unwind {

namespace last_path {

// False if there is no memory.
bool open();
// In a forked child: who held one of them is not here.
void forget();

struct Rules;

}  // namespace last_path

// One walk: what it passes is there for the next. Where another walk has this thread's place (of a
// thread that shares it, or in a handler's midst), nothing is found and nothing kept.
class LastPath {
  public:
    LastPath();
    ~LastPath();
    LastPath(const LastPath&) = delete;
    LastPath& operator=(const LastPath&) = delete;

    // False if the last walk did not pass it behind what was found before.
    bool find(const rule_cache::Key& key, uint64_t* rule);
    void keep(const rule_cache::Key& key, uint64_t rule);

  private:
    last_path::Rules* rules_;
    uint32_t next_ = 0;      // of the last walk's
    uint32_t count_ = 0;     // of this one's
    uint32_t searches_ = 0;  // that found nothing
};

}  // namespace tachograph::unwind
