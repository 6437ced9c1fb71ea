// What a program publishes of itself for readers outside of it: OpenTelemetry's process context
// (OTEP 4719), with the attributes of its resource, such as the name of the service.
//
// It is a mapping with a name of its own. The helper looks for it in the list of mappings less and
// less often, and where it is known reads the time of its publication, and the rest when that has
// changed. Readers of the spool decode what is in it.
#include "base/bounded_lock.h"
#include "base/fault.h"
#include "base/kernel.h"
#include "base/large_data.h"
#include "base/process_maps.h"
#include "base/safe_read.h"
#include "base/sandbox.h"
#include "spool/process_metadata.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/stack_capture.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tachograph::process_context {
namespace {

constexpr char kKey[] = "process_context";
constexpr char kSignature[] = {'O', 'T', 'E', 'L', '_', 'C', 'T', 'X'};
constexpr uint32_t kVersion = 2;
constexpr const char* kNames[] = {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"};
constexpr size_t kMostPayload = 4096;
constexpr int64_t kFirstNs = 250'000'000;
constexpr int64_t kLongestNs = 60'000'000'000;  // between two looks at the list of mappings
constexpr int64_t kAgainNs = 1'000'000'000;     // between two at the time of publication
constexpr int64_t kCost = 1000;                 // at most one in so many parts of the time
constexpr int kTries = 3;                       // while it is being changed

struct Header {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    uint64_t published_ns;  // 0 while it is being changed
    uint64_t payload;
};
static_assert(sizeof(Header) == 32);

struct State {
    char text[8192] = {};
    uint8_t payload[kMostPayload] = {};
    char digits[2 * kMostPayload + 1] = {};
    uint64_t header = 0;        // where it is; 0: not found yet
    uint64_t published_ns = 0;  // of what was written last
    int64_t next_ns = 0;
    int64_t rest_ns = 0;  // until the next look; 0: there was none yet
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
};
constinit TG_LARGE_ZEROS State g;

bool read_header(uint64_t at, Header* header) {
    return safe_read::copy(header, reinterpret_cast<const void*>(at), sizeof *header) &&
           memcmp(header->signature, kSignature, sizeof kSignature) == 0 &&
           header->version == kVersion;
}

bool is_named(const process_maps::Mapping& mapping) {
    for (const char* name : kNames) {
        const size_t length = strlen(name);
        if (mapping.path_length >= length && memcmp(mapping.path, name, length) == 0) return true;
    }
    return false;
}

bool find(const char* line, const char* end, void*) {
    process_maps::Mapping mapping;
    Header header{};
    if (!process_maps::parse(line, end, &mapping) || !mapping.readable || !is_named(mapping) ||
        !read_header(mapping.start, &header))
        return true;
    g.header = mapping.start;
    return false;
}

void write(size_t size) {
    static constexpr char kDigits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; ++i) {
        g.digits[2 * i] = kDigits[g.payload[i] >> 4];
        g.digits[2 * i + 1] = kDigits[g.payload[i] & 15];
    }
    g.digits[2 * size] = '\0';
    process_metadata::tell_of_this(kKey, g.digits);
}

// What is read before it is not read after it. The thread sanitizer has no fences, and sees nothing
// of what the program publishes.
void order_reads() {
#if defined(__SANITIZE_THREAD__)
    std::atomic_signal_fence(std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

// False if there is none any more.
bool read() {
    for (int tries = 0; tries < kTries; ++tries) {
        Header header{};
        Header again{};
        if (!read_header(g.header, &header)) return false;
        if (header.published_ns == 0) continue;
        if (header.published_ns == g.published_ns) return true;
        order_reads();
        const bool fits = header.payload_size > 0 && header.payload_size <= kMostPayload;
        if (fits && !safe_read::copy(g.payload, reinterpret_cast<const void*>(header.payload),
                                     header.payload_size))
            continue;
        order_reads();
        if (!read_header(g.header, &again)) return false;
        if (again.published_ns != header.published_ns) continue;
        if (fits) write(header.payload_size);
        g.published_ns = header.published_ns;
        return true;
    }
    return true;
}

// `guarded`: a fault of this thread would reach our handler.
void look(int64_t now_ns, bool guarded) {
    const bool kernel_before = safe_read::kernel_chosen();
    safe_read::use_kernel(!guarded);
    const int64_t began_ns = kernel::own_cpu_ns();
    if (g.header == 0 || !read()) {
        g.header = 0;
        process_maps::each_line("/proc/self/maps", g.text, sizeof g.text, find, nullptr);
        if (g.header != 0) read();
    }
    const int64_t least_ns = kCost * (kernel::own_cpu_ns() - began_ns);
    safe_read::use_kernel(kernel_before);
    if (g.header != 0)
        g.rest_ns = kAgainNs;
    else
        g.rest_ns = g.rest_ns == 0 ? kFirstNs : std::min(2 * g.rest_ns, kLongestNs);
    g.next_ns = now_ns + std::max(g.rest_ns, least_ns);
}

// It leaves the pace of the ticks alone.
bool tick(int64_t now_ns) {
    if (g.next_ns == 0) g.next_ns = now_ns + kFirstNs;
    if (now_ns < g.next_ns || sandbox::entered()) return true;
    const BoundedLock lock(g.busy, 1);
    if (lock) look(now_ns, fault::verify());
    return true;
}

void flush(bool exiting) {
    if (!exiting || sandbox::entered()) return;
    const BoundedLock lock(g.busy, 1);
    if (lock) look(kernel::monotonic_ns(), stack_capture::fault_gets_through());
}

void forget() {
    release(g.busy);
    g.header = g.published_ns = 0;
    g.next_ns = g.rest_ns = 0;
}

constexpr Source kSource{.name = "process context", .tick = tick, .flush = flush, .forget = forget};
TG_REGISTER_SOURCE(kSource);

}  // namespace
}  // namespace tachograph::process_context
