#include "dicts.h"

#include "reading.h"

#include <Python.h>

namespace tachograph {
namespace {

constexpr uint8_t kGeneralKeys = 0;  // DICT_KEYS_GENERAL: the entries have the hash, too
constexpr size_t kMostKeys = 1 << 16;
constexpr size_t kHeader = 64;

}  // namespace

Dict::Dict(const tg_api* api, const tg_offsets* offsets, const uint8_t* dict) : api_(api) {
    const void* type = nullptr;
    const uint8_t* keys = nullptr;
    const uint8_t* values = nullptr;
    if (!plausible(dict) || !load(api, dict, offsets->object_type, &type) || type != &PyDict_Type ||
        !load(api, dict, offsets->dict_keys, &keys) ||
        !load(api, dict, offsets->dict_values, &values) || values)
        return;
    read_keys(offsets, keys);
}

Dict Dict::of_attributes(const tg_api* api, const tg_offsets* offsets, const uint8_t* type) {
    Dict names(api);
    const uint8_t* keys = nullptr;
    if (plausible(type) && load(api, type, offsets->type_keys, &keys))
        names.read_keys(offsets, keys);
    return names;
}

void Dict::read_keys(const tg_offsets* offsets, const uint8_t* keys) {
    uint8_t header[kHeader];
    if (!plausible(keys) || offsets->keys_indices > sizeof header ||
        !api_->read(header, keys, offsets->keys_indices))
        return;
    const auto log2_index_bytes = field<uint8_t>(header, offsets->keys_log2_index_bytes);
    const auto places = field<int64_t>(header, offsets->keys_count);
    if (log2_index_bytes > 20 || places < 0 || places > static_cast<int64_t>(kMostKeys)) return;
    keys_ = keys;
    size_ = static_cast<size_t>(places);
    entries_ = keys + offsets->keys_indices + (size_t{1} << log2_index_bytes);
    stride_ = (field<uint8_t>(header, offsets->keys_kind) == kGeneralKeys ? 3 : 2) * sizeof(void*);
}

bool Dict::entry(size_t place, Entry* to) const {
    static_assert(sizeof(Entry) == 2 * sizeof(void*));
    return api_->read(to, entries_ + (place + 1) * stride_ - sizeof(Entry), sizeof(Entry)) != 0;
}

const uint8_t* Dict::find(const char* key, size_t* place) const {
    const size_t length = strlen(key);
    for (; *place < size_; ++*place) {
        Entry found{};
        if (entry(*place, &found) && found.value && is_text(api_, found.key, key, length))
            return found.value;
    }
    return nullptr;
}

size_t Dict::place_of(const char* key) const {
    const size_t length = strlen(key);
    size_t place = 0;
    for (Entry found{}; place < size_; ++place)
        if (entry(place, &found) && is_text(api_, found.key, key, length)) break;
    return place;
}

}  // namespace tachograph
