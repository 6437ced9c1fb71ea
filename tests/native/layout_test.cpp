// One record of every kind, with values that test_segments.py expects to read back.
#include "spool/layout.h"
#include "check.h"
#include "spool/record.h"
#include "spool/spool.h"
#include "tachograph/api.h"

#include <cstring>
#include <initializer_list>

using namespace tachograph;

namespace {

constexpr int64_t kStart = 1'000'000'007;

template <typename Record>
spool::Ticket take(Kind kind, Record** record, size_t more = 0) {
    const spool::Ticket ticket = spool::reserve(kind, sizeof(Record) + more);
    CHECK(ticket.record);
    *record = reinterpret_cast<Record*>(ticket.record);
    return ticket;
}

void write_threads() {
    ThreadStartRecord* start;
    spool::Ticket ticket = take(Kind::thread_start, &start);
    start->thread = 3;
    start->tid = 4711;
    start->time_ns = 11;
    start->flags = 1;
    spool::commit(ticket);
    ThreadNameRecord* name;
    const char text[] =
        "F\xC3\xA4"
        "den";  // seven bytes: padded
    ticket = take(Kind::thread_name, &name, strlen(text));
    name->thread = 3;
    name->source = 2;
    name->name_length = static_cast<uint16_t>(strlen(text));
    memcpy(name + 1, text, strlen(text));
    spool::commit(ticket);
    ThreadEndRecord* end;
    ticket = take(Kind::thread_end, &end);
    end->thread = 3;
    end->time_ns = 12;
    end->cpu_ns = 13;
    spool::commit(ticket);
}

void write_definitions() {
    StackRecord* stack;
    spool::Ticket ticket = take(Kind::stack, &stack);
    stack->stack = 21;
    stack->parent = kNone;
    stack->code = 22;
    stack->instruction = -1;
    spool::commit(ticket);
    TaskStackRecord* task;
    const char32_t name[] = U"\u2260\U0001F642";
    ticket = take(Kind::task_stack, &task, 2 * sizeof *name);
    task->stack.stack = 23;
    task->stack.parent = 21;
    task->stack.code = 24;
    task->stack.instruction = 26;
    task->task_length = 2;
    task->task_width = sizeof *name;
    memcpy(task + 1, name, 2 * sizeof *name);
    spool::commit(ticket);
    ModuleRecord* module;
    ticket = take(Kind::module, &module, 2 + 5);
    module->module = 31;
    module->flags = 1;
    module->start = 0x7F00'0000'1000;
    module->end = 0x7F00'0000'2000;
    module->file_offset = 0x3000;
    module->time_ns = 32;
    module->build_id_length = 2;
    module->path_length = 5;
    memcpy(module + 1, "\xAB\xCD/a/b/", 7);
    spool::commit(ticket);
}

void write_rows() {
    CpuRecord* cpu;
    spool::Ticket ticket = take(Kind::cpu, &cpu);
    cpu->time_ns = 41;
    cpu->cpu_ns = 42;
    cpu->system_ns = -1;
    cpu->pc = 0xFFFF'FFFF'0000'0001;
    cpu->thread = 43;
    cpu->stack = 44;
    cpu->overruns = 45;
    cpu->gil = 1;
    cpu->opcode = 46;
    cpu->origin = static_cast<uint8_t>(Origin::remote);
    cpu->stack_state = TG_STACK_TRUNCATED;
    cpu->native_stack = 47;
    cpu->native_path = 4;
    cpu->collecting = 2;
    spool::commit(ticket);
    WaitRecord* wait;
    ticket = take(Kind::wait, &wait);
    wait->start_ns = 51;
    wait->end_ns = 52;
    wait->off_cpu_ns = 53;
    wait->pc = 54;
    wait->thread = 55;
    wait->stack = kNone;
    wait->syscall = -1;
    wait->target = static_cast<uint8_t>(Target::terminal);
    wait->stack_state = TG_STACK_TORN;
    spool::commit(ticket);
    StateRecord* state;
    ticket = take(Kind::state, &state);
    state->time_ns = 61;
    state->event = static_cast<uint32_t>(StateEvent::exec);
    state->detail = 62;
    spool::commit(ticket);
}

}  // namespace

TEST(layout_every_kind) {
    CHECK(spool::open(tests::folder, 65536, kStart) == 0);
    write_threads();
    write_definitions();
    write_rows();
    // Reserved and then given up: what lies in it must not be read as records.
    const spool::Ticket given_up = spool::reserve(Kind::code, 64);
    CHECK(given_up.record);
    const uint64_t inner = record_header(Kind::state, 24, 8, 0);
    memcpy(given_up.record + 8, &inner, sizeof inner);
    spool::commit({given_up.record, abandoned_header(given_up.header), given_up.sequence});
    MetaRecord* meta;
    const spool::Ticket ticket = take(Kind::meta, &meta, 3 + 4);
    meta->key_length = 3;
    meta->value_length = 4;
    memcpy(meta + 1, "keyword", 7);
    spool::commit(ticket);
    spool::count(Loss::forks_unrecorded, 5);
}

TEST(layout_headers) {
    // What a header says of its place is wrong anywhere else.
    const uint64_t header = record_header(Kind::cpu, 56, 640, 7);
    CHECK((header & 0xFFFFFFFF) == 56 && (header >> 32 & 0xFF) == 8);
    CHECK(header != record_header(Kind::cpu, 56, 648, 7));
    CHECK(header != record_header(Kind::cpu, 56, 640, 8));
    CHECK(header != record_header(Kind::cpu, 64, 640, 7));
    for (uint32_t kind = 1; kind < 255; ++kind)
        for (const uint64_t offset : {64u, 65528u, 1048568u})
            CHECK(abandoned_header(record_header(static_cast<Kind>(kind), 72, offset, kind)) ==
                  record_header(Kind::abandoned, 72, offset, kind));
    CHECK(padded(0) == 0 && padded(1) == 8 && padded(8) == 8 && padded(57) == 64);
}
