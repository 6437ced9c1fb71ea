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
    // The names of the attributes that a class's objects keep without dicts of their own: keys
    // alone. A value lies in the object, at the place of its key.
    static Dict of_attributes(const tg_api* api, const tg_offsets* offsets, const uint8_t* type);

    bool readable() const { return keys_ != nullptr; }
    size_t size() const { return size_; }  // places, those of removed entries with them
    const uint8_t* keys() const { return keys_; }
    // False if it could not be read.
    bool entry(size_t place, Entry* to) const;
    // The value of a key of at most 32 ASCII characters, from a place on; NULL if there is none.
    // `place` is left where it is, or behind the end.
    const uint8_t* find(const char* key, size_t* place) const;
    const uint8_t* find(const char* key) const {
        size_t first = 0;
        return find(key, &first);
    }
    // The place of such a key, whether or not it has a value here; `size()` if there is none.
    size_t place_of(const char* key) const;

  private:
    explicit Dict(const tg_api* api) : api_(api) {}
    void read_keys(const tg_offsets* offsets, const uint8_t* keys);

    const tg_api* api_;
    const uint8_t* keys_ = nullptr;
    const uint8_t* entries_ = nullptr;
    size_t size_ = 0;
    size_t stride_ = 0;
};

}  // namespace tachograph
