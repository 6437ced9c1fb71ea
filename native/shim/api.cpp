// The shim's side of tachograph/api.h.
#include "tachograph/api.h"

#include "contexts.h"
#include "kernel.h"
#include "layout.h"
#include "lifecycle.h"
#include "recorder.h"
#include "safe_read.h"
#include "spool.h"

#include <cstring>

namespace tachograph {
namespace {

int api_arm(const tg_options* options, const tg_walker* walker, char* error, size_t size) {
    return lifecycle::arm(*options, *walker, error, size);
}

int api_meta(const char* key, const char* value) {
    if (!recording()) return -1;
    const size_t key_length = strlen(key);
    const size_t value_length = strlen(value);
    if (key_length > UINT16_MAX) return -1;
    const spool::Ticket ticket =
        spool::reserve(Kind::meta, sizeof(MetaRecord) + key_length + value_length);
    if (!ticket.record) return -1;
    auto* record = reinterpret_cast<MetaRecord*>(ticket.record);
    record->key_length = static_cast<uint16_t>(key_length);
    record->value_length = static_cast<uint32_t>(value_length);
    memcpy(record + 1, key, key_length);
    memcpy(reinterpret_cast<uint8_t*>(record + 1) + key_length, value, value_length);
    spool::commit(ticket);
    return 0;
}

int api_read(void* to, const void* from, size_t size) {
    if (recording()) return safe_read::copy(to, from, size) ? 1 : 0;
    // Before arming (the check that we know this interpreter) nobody mends a fault.
    const bool before = safe_read::kernel_chosen();
    safe_read::use_kernel(true);
    const bool read = safe_read::copy(to, from, size);
    safe_read::use_kernel(before);
    return read ? 1 : 0;
}

// A ticket packs into the header that will be written; the record is found again by address.
uint8_t* api_reserve(uint8_t kind, size_t size, uint64_t* ticket) {
    const spool::Ticket made = spool::reserve(static_cast<Kind>(kind), size);
    *ticket = made.header;
    return made.record;
}

void api_commit(uint8_t* record, uint64_t ticket, int filled) {
    spool::commit({record, filled ? ticket : abandoned_header(ticket), 0});
}

constexpr tg_api kApi = {
    .version = TG_API_VERSION,
    .arm = api_arm,
    .pause = [] { lifecycle::pause(true); },
    .resume = [] { lifecycle::pause(false); },
    .active = [] { return recording() ? 1 : 0; },
    .meta = api_meta,
    .restart_helper = lifecycle::restart_helper,
    .read = api_read,
    .intern_stack = contexts::intern_stack,
    .intern_code = contexts::intern_code,
    .code_written = [](uint32_t code, int written) { contexts::code_written(code, written != 0); },
    .reserve = api_reserve,
    .commit = api_commit,
    .borrow_scratch = contexts::borrow_scratch,
    .return_scratch = contexts::return_scratch,
};

}  // namespace
}  // namespace tachograph

extern "C" __attribute__((visibility("default"))) const tg_api* tachograph_api() {
    return &tachograph::kApi;
}
