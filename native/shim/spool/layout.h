// The spool's bytes, as format-spec/SPEC.md defines them. Little-endian x86-64 only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph {

inline constexpr uint32_t kNone = 0xFFFFFFFFu;
inline constexpr size_t kControlSize = 4096;
inline constexpr size_t kSegmentHeader = 64;

enum class Kind : uint8_t {
    meta = 1,
    thread_start = 2,
    thread_name = 3,
    thread_end = 4,
    code = 5,
    stack = 6,
    module = 7,
    cpu = 8,
    wait = 9,
    state = 10,
    memory = 11,
    block = 12,
    freed = 13,
    copy = 14,
    span = 15,
    task_stack = 21,  // 16 to 18 are the recording command's
    abandoned = 255,  // reserved, then not filled: readers skip it as they skip every unknown kind
};

// Index = place in the `losses` list of tables.toml.
enum class Loss : uint32_t {
    records_dropped,
    stacks_torn,
    stacks_truncated,
    stacks_lost,
    timers_refused,
    threads_missed,
    recording_stopped,
    forks_unrecorded,
    signal_conflicts,
    slow_reads,
    samples_remote,
    sampler_late,
    waits_torn,
    execs,
    helper_refused = 17,  // 14 to 16 are counted by readers
    blocks_unfollowed,
    mappings_untracked,
    baseline_unknown,
    allocator_unseen,
    native_unseen,
    allocator_replaced,
    crossings_merged,
    interpreter_unsupported = 26,  // 25, 27 and 28 are counted by readers
    task_names_unkept = 33,        // 29 to 31 by the recording command, 32 by readers
};

enum class ControlState : uint32_t { recording = 1, ended = 2, stopped = 3 };
enum class Origin : uint8_t { timer = 0, remote = 1 };
enum class Target : uint8_t { unknown, file, socket, pipe, terminal, gpu, other, cpu };
enum class StateEvent : uint32_t {
    paused = 1,
    resumed = 2,
    forked = 3,
    exec = 4,
    stopped = 5,
    exiting = 6
};
enum class MemoryEvent : uint8_t { start, threshold, tick, end };

struct Control {
    char magic[8];
    uint32_t major;
    uint32_t minor;
    int32_t pid;
    int32_t parent_pid;
    int64_t start_ns;
    int64_t start_utc_ns;
    uint64_t segment_size;
    uint32_t current_segment;
    uint32_t state;
    uint32_t stop_errno;
    uint32_t paused;
    int64_t end_ns;
    int64_t helper_cpu_ns;
    int64_t handler_cpu_ns;
    uint64_t samples;
    uint64_t wait_ticks;
    uint32_t stop_requested;     // written by the recording command, as is the next
    uint32_t segment_requested;  // the number that the current segment shall have at least
    uint64_t own_bytes;
    uint32_t young_unkept;
    uint32_t snapshots_requested;
    uint64_t losses[64];
};
static_assert(offsetof(Control, start_ns) == 24 && offsetof(Control, current_segment) == 48);
static_assert(offsetof(Control, end_ns) == 64 && offsetof(Control, samples) == 88);
static_assert(offsetof(Control, stop_requested) == 104 && offsetof(Control, losses) == 128);
static_assert(offsetof(Control, segment_requested) == 108);
static_assert(offsetof(Control, own_bytes) == 112 && offsetof(Control, young_unkept) == 120);
static_assert(offsetof(Control, snapshots_requested) == 124);

struct SegmentHeader {
    char magic[8];
    uint32_t sequence;
    uint32_t size;
    int32_t pid;
    uint32_t reserved;
    int64_t start_ns;
    uint8_t zero[32];
};
static_assert(sizeof(SegmentHeader) == kSegmentHeader);

struct ThreadStartRecord {
    uint64_t header;
    uint32_t thread;
    int32_t tid;
    int64_t time_ns;
    uint32_t flags;
    uint32_t zero;
};

struct ThreadNameRecord {
    uint64_t header;
    uint32_t thread;
    uint16_t source;
    uint16_t length;
};

struct ThreadEndRecord {
    uint64_t header;
    uint32_t thread;
    uint32_t zero;
    int64_t time_ns;
    int64_t cpu_ns;
};

struct StackRecord {
    uint64_t header;
    uint32_t stack;
    uint32_t parent;
    uint32_t code;
    int32_t instruction;
};

struct TaskStackRecord {
    StackRecord stack;
    uint32_t name_length;
    uint8_t name_width;
    uint8_t zero[3];
};
static_assert(sizeof(TaskStackRecord) == 32);

struct ModuleRecord {
    uint64_t header;
    uint32_t module;
    uint32_t flags;
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    int64_t time_ns;
    uint16_t build_id_length;
    uint16_t path_length;
    uint32_t zero;
};
static_assert(sizeof(ModuleRecord) == 56);

struct CpuRecord {
    uint64_t header;
    int64_t time_ns;
    int64_t cpu_ns;
    int64_t system_ns;
    uint64_t pc;
    uint32_t thread;
    uint32_t stack;
    uint32_t overruns;
    uint8_t gil;
    uint8_t opcode;
    uint8_t origin;
    uint8_t stack_state;
};
static_assert(sizeof(CpuRecord) == 56);

struct WaitRecord {
    uint64_t header;
    int64_t start_ns;
    int64_t end_ns;
    int64_t off_cpu_ns;
    uint64_t pc;
    uint32_t thread;
    uint32_t stack;
    int32_t syscall;
    uint8_t target;
    uint8_t stack_state;
    uint16_t zero;
};
static_assert(sizeof(WaitRecord) == 56);

struct StateRecord {
    uint64_t header;
    int64_t time_ns;
    uint32_t event;
    uint32_t detail;
};

inline constexpr size_t kDomains = 5;

struct Flow {
    int64_t allocated;
    int64_t freed;
};

struct MemoryRecord {
    uint64_t header;
    int64_t time_ns;
    int64_t footprint;
    int64_t peak;
    Flow flows[kDomains];
    int64_t resident;
    int64_t minor_faults;
    int64_t major_faults;
    uint64_t pc;
    uint32_t thread;
    uint32_t stack;
    uint32_t kept_frames;
    uint8_t event;
    uint8_t stack_state;
    uint16_t zero;
};
static_assert(sizeof(MemoryRecord) == 160);

struct BlockRecord {
    uint64_t header;
    int64_t time_ns;
    int64_t size;
    int64_t requested;
    int64_t mean;
    int64_t weight;
    uint64_t pc;
    uint32_t block;
    uint32_t thread;
    uint32_t stack;
    uint8_t domain;
    uint8_t stack_state;
    uint8_t followed;
    uint8_t zero;
};
static_assert(sizeof(BlockRecord) == 72);

// Behind the control file where memory is recorded: places for the blocks that wait for their rows.
inline constexpr uint32_t kYoungPlaces = 1820;
inline constexpr size_t kYoungSize = 128 * 1024;
inline constexpr uint32_t kFirstYoung = 0xFFFF0000u;  // their block numbers, which no others reach
static_assert(kYoungPlaces * sizeof(BlockRecord) <= kYoungSize);

struct FreedRecord {
    uint64_t header;
    int64_t time_ns;
    uint32_t block;
    uint32_t thread;
};
static_assert(sizeof(FreedRecord) == 24);

struct CopyRecord {
    uint64_t header;
    int64_t time_ns;
    int64_t bytes;
    int64_t size;
    int64_t mean;
    uint64_t pc;
    uint32_t thread;
    uint32_t stack;
    uint8_t stack_state;
    uint8_t zero[7];
};
static_assert(sizeof(CopyRecord) == 64);

struct SpanRecord {
    uint64_t header;
    int64_t start_ns;
    int64_t end_ns;
    uint32_t thread;
    uint32_t span;
    uint32_t parent;
    uint16_t name_length;
    uint16_t zero;
    uint32_t fields_length;
    uint32_t zero_too;
};
static_assert(sizeof(SpanRecord) == 48);

// The process log, beside the segments.
enum class ProcessKind : uint32_t { start = 1, end = 2, exec = 3, fork = 4, refused = 6 };
inline constexpr int64_t kMostProcessLog = 51'200'000;

struct ProcessRecord {
    char magic[8];
    uint32_t kind;
    int32_t pid;
    int32_t parent_pid;
    int32_t exit_status;
    int64_t time_ns;
    int64_t first;   // end: user_ns; start and fork: pid of the nearest process that is listed
    int64_t second;  // end: system_ns; start and fork: time_ns of its record
    int64_t max_resident;
    uint32_t executable_length;
    uint32_t command_length;
    char text[448];
};
static_assert(sizeof(ProcessRecord) == 512 && offsetof(ProcessRecord, text) == 64);

struct MetaRecord {
    uint64_t header;
    uint16_t key_length;
    uint16_t zero;
    uint32_t value_length;
};

// The header is written last; `check` lets a reader find the next whole record behind a torn one.
constexpr uint64_t record_header(Kind kind, uint32_t length, uint64_t offset, uint32_t sequence) {
    const auto k = static_cast<uint32_t>(kind);
    const uint32_t check = (0xA5C3u ^ (length >> 3) ^ (k * 0x1F35u) ^
                            (static_cast<uint32_t>(offset >> 3) * 0x2545u) ^ (sequence * 0x3D4Du)) &
                           0xFFFFu;
    return static_cast<uint64_t>(length) | static_cast<uint64_t>(k) << 32 |
           static_cast<uint64_t>(check) << 48;
}

// The header of the same place as an abandoned record.
constexpr uint64_t abandoned_header(uint64_t header) {
    const auto kind = static_cast<uint32_t>(header >> 32 & 0xFF);
    const auto length = static_cast<uint32_t>(header);
    const auto others = static_cast<uint32_t>(header >> 48) ^ ((kind * 0x1F35u) & 0xFFFFu);
    const auto k = static_cast<uint32_t>(Kind::abandoned);
    return static_cast<uint64_t>(length) | static_cast<uint64_t>(k) << 32 |
           static_cast<uint64_t>((others ^ (k * 0x1F35u)) & 0xFFFFu) << 48;
}

constexpr size_t padded(size_t size) { return (size + 7) & ~size_t{7}; }

}  // namespace tachograph
