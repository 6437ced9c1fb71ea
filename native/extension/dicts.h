// The entries of a dict, read from outside.
#pragma once

#include "compat.h"
#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>

namespace tachograph {

class Dict {
  public:
    struct Entry {
        const uint8_t* key;
        const uint8_t* value;  // NULL where an entry was removed
    };

    // What is not a dict, or not one that keeps its values beside its keys, has no entries.
    Dict(const tg_api* api, const tg_offsets* offsets, const uint8_t* dict);

    bool readable() const { return keys_ != nullptr; }
    size_t size() const { return size_; }  // places, those of removed entries with them
    const uint8_t* keys() const { return keys_; }
    // False if it could not be read.
    bool entry(size_t place, Entry* to) const;
    // The value of a key of at most 32 ASCII characters, from a place on; NULL if there is none.
    // `place` is left where it is, or behind the end.
    const uint8_t* find(const char* key, size_t* place) const;

  private:
    const tg_api* api_;
    const uint8_t* keys_ = nullptr;
    const uint8_t* entries_ = nullptr;
    size_t size_ = 0;
    size_t stride_ = 0;
};

}  // namespace tachograph
