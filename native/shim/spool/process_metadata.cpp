#include "spool/process_metadata.h"

#include "base/large_data.h"
#include "spool/layout.h"
#include "spool/spool.h"

#include <cstdint>
#include <cstring>

namespace tachograph::process_metadata {
namespace {

// Pairs of texts, each with its NUL. What finds no room here is told once only.
struct State {
    char texts[8192] = {};
    size_t used = 0;
};
constinit TG_LARGE_ZEROS State g;

void keep(const char* key, size_t key_length, const char* value, size_t value_length) {
    const size_t length = key_length + value_length + 2;
    if (length > sizeof g.texts - g.used) return;
    memcpy(g.texts + g.used, key, key_length + 1);
    memcpy(g.texts + g.used + key_length + 1, value, value_length + 1);
    g.used += length;
}

bool write(const char* key, size_t key_length, const char* value, size_t value_length) {
    const spool::Ticket ticket =
        spool::reserve(Kind::meta, sizeof(MetaRecord) + key_length + value_length);
    if (!ticket.record) return false;
    auto* record = reinterpret_cast<MetaRecord*>(ticket.record);
    record->key_length = static_cast<uint16_t>(key_length);
    record->value_length = static_cast<uint32_t>(value_length);
    memcpy(record + 1, key, key_length);
    memcpy(reinterpret_cast<uint8_t*>(record + 1) + key_length, value, value_length);
    spool::commit(ticket);
    return true;
}

}  // namespace

bool tell(const char* key, const char* value) {
    const size_t key_length = strlen(key);
    const size_t value_length = strlen(value);
    if (key_length > UINT16_MAX) return false;
    keep(key, key_length, value, value_length);
    return write(key, key_length, value, value_length);
}

bool tell_of_this(const char* key, const char* value) {
    return write(key, strlen(key), value, strlen(value));
}

void forget() { g.used = 0; }

void tell_again() {
    for (size_t at = 0; at < g.used;) {
        const char* key = g.texts + at;
        const size_t key_length = strlen(key);
        const char* value = key + key_length + 1;
        const size_t value_length = strlen(value);
        write(key, key_length, value, value_length);
        at += key_length + value_length + 2;
    }
}

}  // namespace tachograph::process_metadata
