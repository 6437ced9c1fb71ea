// Which memory a thread is about to access: the walk over its code is held against the processor.
#include "base/fault.h"
#include "check.h"
#include "redundancy/block_content.h"
#include "redundancy/code_walk.h"
#include "redundancy/decoder.h"
#include "redundancy/operands.h"
#include "redundancy/slow_code.h"
#include "redundancy/watchpoint.h"
#include "tachograph/api.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <cstdint>
#include <cstring>
#include <initializer_list>

using namespace tachograph;

namespace {

constexpr uint8_t kOperations[] = {0x01, 0x29, 0x21, 0x09, 0x31, 0x39, 0x85};  // add to test
constexpr uint64_t kValues[] = {0,
                                1,
                                2,
                                0x7F,
                                0x80,
                                0xFF,
                                0x8000,
                                0x7FFFFFFF,
                                0x80000000,
                                0xFFFFFFFF,
                                0x7FFFFFFFFFFFFFFF,
                                0x8000000000000000,
                                ~uint64_t{0}};

struct Code {
    uint8_t* bytes;
    size_t size = 0;

    Code()
        : bytes(static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        CHECK(bytes != MAP_FAILED);
    }
    ~Code() { munmap(bytes, 4096); }

    Code& add(std::initializer_list<int> more) {
        for (const int byte : more) bytes[size++] = static_cast<uint8_t>(byte);
        return *this;
    }
    uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(bytes) + offset; }
};

// Interrupted at its beginning, with rdi and rsi as a function has its first two arguments.
struct Interrupted {
    long long registers[NGREG] = {};

    Interrupted(const Code& code, uint64_t first, uint64_t second) {
        registers[REG_RIP] = static_cast<long long>(code.at(0));
        registers[REG_RDI] = static_cast<long long>(first);
        registers[REG_RSI] = static_cast<long long>(second);
        registers[REG_RSP] = static_cast<long long>(reinterpret_cast<uint64_t>(this));
    }
};

void prepare() {
    fault::install();
    decoder::prepare();
}

bool never(uint64_t, uint64_t) { return false; }

uint64_t g_header;
bool one(uint64_t address, uint64_t) { return address == g_header; }

operands::Next next(const Code& code, uint64_t first, uint64_t second, operands::Access* found,
                    operands::Wanted wanted = {true, true, never}) {
    const Interrupted interrupted(code, first, second);
    return operands::next(interrupted.registers, wanted, found);
}

// OP rdi, rsi (or their lower parts); jCC to `mov eax, 1; ret`; xor eax, eax; ret.
void write_branch(Code* code, uint8_t operation, int width, int condition) {
    code->size = 0;
    if (width == 2) code->add({0x66});
    if (width == 8) code->add({0x48});
    if (width == 1) code->add({0x40});
    code->add({width == 1 ? operation - 1 : operation, 0xF7, 0x70 + condition, 3});
    code->add({0x31, 0xC0, 0xC3, 0xB8, 1, 0, 0, 0, 0xC3});
}

bool walk_jumps(const Code& code, uint64_t first, uint64_t second) {
    const Interrupted interrupted(code, first, second);
    CodeWalk walk(interrupted.registers);
    decoder::Instruction instruction;
    for (int step = 0; step < 2; ++step) {
        CHECK(walk.decode(&instruction));
        CHECK(walk.step(instruction));
    }
    CHECK(walk.decode(&instruction));
    return instruction.length == 5;
}

}  // namespace

TEST(redundancy_branches_are_taken_as_by_the_processor) {
    prepare();
    Code code;
    for (const uint8_t operation : kOperations)
        for (const int width : {1, 2, 4, 8})
            for (int condition = 0; condition < 16; ++condition) {
                write_branch(&code, operation, width, condition);
                int (*run)(uint64_t, uint64_t);
                memcpy(&run, &code.bytes, sizeof run);
                for (const uint64_t first : kValues)
                    for (const uint64_t second : kValues) {
                        // The auxiliary carry alone is undefined after some of them.
                        CHECK(walk_jumps(code, first, second) == (run(first, second) != 0));
                    }
            }
}

TEST(redundancy_finds_what_is_about_to_be_accessed) {
    prepare();
    static uint64_t cells[4] = {};
    const auto here = reinterpret_cast<uint64_t>(cells);
    operands::Access found;

    Code load;
    load.add({0x48, 0x8B, 0x44, 0xF7, 0x08});  // mov rax, [rdi + rsi * 8 + 8]
    CHECK(next(load, here, 2, &found) == operands::Next::found);
    CHECK(found.address == here + 24 && found.width == 8 && found.reads && !found.writes);
    CHECK(found.pc == load.at(0) && found.next_pc == load.at(5));

    Code store;
    store.add({0x90, 0x66, 0x89, 0x37});  // nop; mov [rdi], si
    CHECK(next(store, here, 0, &found) == operands::Next::found);
    CHECK(found.address == here && found.width == 2 && !found.reads && found.writes);
    CHECK(found.pc == store.at(1));
}

TEST(redundancy_follows_pointers_that_were_just_loaded) {
    prepare();
    static uint64_t target = 5;
    static uint64_t cells[2] = {reinterpret_cast<uint64_t>(&target), 0};
    const auto here = reinterpret_cast<uint64_t>(cells);
    g_header = here;
    operands::Access found;

    Code code;
    code.add({0x48, 0x8B, 0x07});        // mov rax, [rdi]
    code.add({0x48, 0x85, 0xC0});        // test rax, rax
    code.add({0x74, 0x03});              // je: not taken
    code.add({0x48, 0x8B, 0x10, 0xC3});  // mov rdx, [rax]; ret
    CHECK(next(code, here, 0, &found, {true, true, one}) == operands::Next::found);
    CHECK(found.address == reinterpret_cast<uint64_t>(&target) && found.pc == code.at(8));
    cells[0] = 0;  // taken: to the return, past both
    CHECK(next(code, here, 0, &found, {true, true, one}) == operands::Next::header);

    // What was stored on the way is not what is there now.
    Code changed;
    changed.add({0x48, 0x89, 0x37});        // mov [rdi], rsi
    changed.add({0x48, 0x8B, 0x07});        // mov rax, [rdi]
    changed.add({0x48, 0x8B, 0x10, 0xC3});  // mov rdx, [rax]; ret
    CHECK(next(changed, here, 0, &found, {true, true, one}) == operands::Next::header);
}

TEST(redundancy_does_not_guess) {
    prepare();
    static uint64_t cell = 0;
    const auto here = reinterpret_cast<uint64_t>(&cell);
    operands::Access found;

    Code unknown;
    unknown.add({0x48, 0x0F, 0xAF, 0xFE});        // imul rdi, rsi
    unknown.add({0x48, 0x8B, 0x07});              // mov rax, [rdi]
    unknown.add({0x72, 0x00, 0x48, 0x8B, 0x06});  // jb: not known after imul; mov rax, [rsi]
    CHECK(next(unknown, here, here, &found) == operands::Next::none);

    Code call;
    call.add({0xFF, 0xD7, 0x48, 0x8B, 0x06});  // call rdi; mov rax, [rsi]
    CHECK(next(call, here, here, &found) == operands::Next::none);

    Code own;
    own.add({0x48, 0x8B, 0x44, 0x24, 0x10, 0xC3});  // mov rax, [rsp + 16]; ret
    CHECK(next(own, here, here, &found) == operands::Next::stack);

    Code locked;
    locked.add({0xF0, 0x48, 0x01, 0x37, 0xC3});  // lock add [rdi], rsi; ret
    CHECK(next(locked, here, here, &found) == operands::Next::none);

    Code bad;
    bad.add({0x06});
    CHECK(next(bad, here, here, &found) == operands::Next::undecoded);
}

TEST(redundancy_looks_for_stores_alone) {
    prepare();
    static uint64_t cells[2] = {};
    const auto here = reinterpret_cast<uint64_t>(cells);
    operands::Access found;
    Code code;
    code.add({0x48, 0x8B, 0x07, 0x48, 0x89, 0x77, 0x08,
              0xC3});  // mov rax, [rdi]; mov [rdi + 8], rsi; ret
    CHECK(next(code, here, 0, &found, {false, true, never}) == operands::Next::found);
    CHECK(found.address == here + 8 && found.writes);
    CHECK(next(code, here, 0, &found, {true, false, never}) == operands::Next::found);
    CHECK(found.address == here && found.reads);
}

TEST(redundancy_knows_what_has_just_been_accessed) {
    prepare();
    static uint64_t cell = 0;
    Code code;
    for (int times = 0; times < 16; ++times)
        code.add({0x48, 0x8B, 0x47, 0x08});  // mov rax, [rdi + 8]
    Interrupted interrupted(code, reinterpret_cast<uint64_t>(&cell) - 8, 0);
    interrupted.registers[REG_RIP] = static_cast<long long>(code.at(code.size));
    operands::Access found;
    CHECK(operands::last(interrupted.registers, reinterpret_cast<uint64_t>(&cell), 8, &found) ==
          operands::Last::found);
    CHECK(found.pc == code.at(code.size - 4) && found.reads && found.width == 8);
}

namespace {

// CPU ns of a sample of 1,000 that are lost where the thread is about to run these bytes, which are
// followed by `nop`s.
int64_t lost(std::initializer_list<int> bytes, int64_t system_ns, int64_t paid_ns = 0,
             uint64_t rdi = 0x1000) {
    Code code;
    code.add(bytes);
    for (int n = 0; n < 32; ++n) code.add({0x90});
    ucontext_t context{};
    context.uc_mcontext.gregs[REG_RIP] = static_cast<long long>(code.at(0));
    context.uc_mcontext.gregs[REG_RDI] = static_cast<long long>(rdi);
    const tg_walk found{};
    const Sample sample{nullptr, &context, found, 0, 0, true, 0, 1000, system_ns};
    return redundancy::slow_code::lost_ns(sample, paid_ns);
}

}  // namespace

TEST(redundancy_strings_are_slow_while_something_is_watched) {
    namespace slow_code = redundancy::slow_code;
    prepare();
    const slow_code::Times measured = slow_code::measure();
    CHECK(measured.string_ns > 0);
    CHECK(measured.pages_ns > 0);
    CHECK(measured.store_ns > 0);
    // Of strings three quarters of the time are lost then, of the kernel one half.
    slow_code::compare({100, 100, 1}, {400, 200, 1});
    CHECK(lost({0xF3, 0xA4}, 0) == 750);                // rep movsb
    CHECK(lost({0xF3, 0x48, 0xAB}, 0) == 750);          // rep stosq
    CHECK(lost({0x66, 0xF3, 0xA5}, 400) == 450 + 200);  // rep movsw
    CHECK(lost({0xF3, 0xA4}, -1) == 750);
    CHECK(lost({0xA4}, 0) == 0);              // movsb, once
    CHECK(lost({0xF3, 0xAE}, 0) == 0);        // rep scasb
    CHECK(lost({0x48, 0x89, 0x07}, 0) == 0);  // mov
    CHECK(lost({0x48, 0x89, 0x07}, 400) == 200);
    CHECK(lost({0x48, 0x89, 0x07}, 400, 300) == 50);
    CHECK(lost({0x48, 0x89, 0x07}, 400, 500) == 0);
    CHECK(lost({0x48, 0x89, 0x07}, 5000) == 500);  // never more than there was
    slow_code::compare({100, 100, 1}, {90, -1, -1});
    CHECK(lost({0xF3, 0xA4}, 400) == 0);
}

TEST(redundancy_stores_across_cache_lines_are_slow_while_something_is_watched) {
    namespace slow_code = redundancy::slow_code;
    prepare();
    // Each takes 12 ns more, and a walk goes through 24 instructions, of 1 ns.
    slow_code::compare({100, 100, 1}, {100, 100, 13});
    const auto mov = [](uint64_t rdi) { return lost({0x48, 0x89, 0x07}, 0, 0, rdi); };
    CHECK(mov(0x1038) == 0);  // the last eight bytes of a line
    CHECK(mov(0x1039) == 1000 / 3);
    CHECK(mov(0x103F) == 1000 / 3);
    CHECK(mov(0x1040) == 0);
    CHECK(lost({0x48, 0x8B, 0x07}, 0, 0, 0x103C) == 0);  // a load
    // A loop of four instructions: vmovupd [rdi], zmm0; nop; add rdi, 64; jmp.
    const std::initializer_list<int> loop = {0x62, 0xF1, 0xFD, 0x48, 0x11, 0x07, 0x90,
                                             0x48, 0x83, 0xC7, 0x40, 0xEB, 0xF3};
    CHECK(lost(loop, 0, 0, 0x1000) == 0);
    CHECK(lost(loop, 0, 0, 0x1010) == 750);  // six stores: 72 of 96 ns
    CHECK(lost(loop, 500, 0, 0x1010) == 375);
    // Behind a return nothing is known; the walk is too short then to be believed as it is.
    CHECK(lost({0x48, 0x89, 0x07, 0xC3}, 0, 0, 0x103C) == 600);
    slow_code::compare({100, 100, 1}, {100, 100, 1});
    CHECK(lost(loop, 0, 0, 0x1010) == 0);
}

TEST(redundancy_kernels_that_hold_back_a_blocked_trap) {
    for (const char* release : {"5.18.0", "5.18", "6.1.0-13-amd64", "6.18.4+", "10.0"})
        CHECK(kernel_has_deferred_traps(release));
    for (const char* release : {"5.17.15", "5.4.0-150-generic", "4.4.0", "3.10", "5", "", "x"})
        CHECK(!kernel_has_deferred_traps(release));
}

TEST(redundancy_blocks_that_hold_the_same_have_the_same_hash) {
    namespace block_content = redundancy::block_content;
    prepare();
    block_content::choose_key();
    constexpr uint64_t kWords = 8192;
    static uint64_t one[kWords], other[kWords];
    const auto of = [](const uint64_t* block, uint64_t words) {
        return block_content::of(reinterpret_cast<uint64_t>(block), 8 * words);
    };
    for (uint64_t at = 0; at < kWords; ++at) one[at] = other[at] = at * at + 7;
    for (const uint64_t words : {uint64_t{64}, uint64_t{512}, kWords}) {
        CHECK(of(one, words).hash != 0);
        CHECK(of(one, words).hash == of(other, words).hash);
        CHECK(of(one, words).head_hash == of(other, words).head_hash);
    }
    CHECK(of(one, 512).hash != of(one, kWords).hash);
    CHECK(of(one, 512).head_hash == of(one, kWords).head_hash);  // one grew from the other
    other[3] ^= 1;
    CHECK(of(one, 64).hash != of(other, 64).hash);
    other[3] ^= 1;
    other[63] ^= 1;  // what the allocator added
    CHECK(of(one, 64).hash == of(other, 64).hash);
    const uint64_t before = of(one, 64).hash;
    block_content::choose_key();
    CHECK(of(one, 64).hash != before);  // it tells nothing of the content

    memset(other, 0, sizeof other);
    CHECK(of(other, kWords).hash == 0);  // cleared, or fresh
    CHECK(of(one, 4).hash == 0);         // too short
    void* const gone = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gone != MAP_FAILED);
    CHECK(block_content::of(reinterpret_cast<uint64_t>(gone), 4096).hash == 0);
    munmap(gone, 4096);
}
