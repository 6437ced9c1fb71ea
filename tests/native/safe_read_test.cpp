// Guarded reads of everything that cannot be read, both ways: our fault handler, and the kernel.
#include "base/safe_read.h"
#include "base/fault.h"
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <thread>

using namespace tachograph;

namespace {

constexpr size_t kPage = 4096;

uint8_t* map(size_t size, int protection) {
    void* got = mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(got != MAP_FAILED);
    return static_cast<uint8_t*>(got);
}

bool reads(const void* from, size_t size) {
    uint8_t to[2 * kPage];
    CHECK(size <= sizeof to);
    return safe_read::copy(to, from, size);
}

void check_reads() {
    // What can be read is read, whatever its size and alignment.
    uint8_t source[512];
    for (size_t i = 0; i < sizeof source; ++i) source[i] = static_cast<uint8_t>(i * 7);
    for (const size_t size :
         {0u, 1u, 2u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 80u, 127u, 256u, 257u, 400u})
        for (const size_t offset : {0u, 1u, 5u}) {
            uint8_t to[512] = {};
            CHECK(safe_read::copy(to, source + offset, size));
            CHECK(memcmp(to, source + offset, size) == 0 && to[size] == 0);
        }

    CHECK(!reads(nullptr, 8));
    CHECK(!reads(reinterpret_cast<void*>(8), 8));
    CHECK(!reads(reinterpret_cast<void*>(kPage), 8));
    CHECK(!reads(reinterpret_cast<void*>(~uintptr_t{0} - 15), 8));       // the kernel's
    CHECK(!reads(reinterpret_cast<void*>(uintptr_t{0xDEAD} << 48), 8));  // not an address at all
    CHECK(!reads(reinterpret_cast<void*>(uintptr_t{0x7FFF'FFFF'FFFC}), 8));  // into nowhere

    // The end of a mapping, and what straddles it.
    uint8_t* pages = map(2 * kPage, PROT_READ | PROT_WRITE);
    CHECK(munmap(pages + kPage, kPage) == 0);
    CHECK(reads(pages + kPage - 8, 8));
    CHECK(!reads(pages + kPage - 7, 8));
    CHECK(!reads(pages + kPage, 1));
    CHECK(!reads(pages, kPage + 1));
    // Each way of reading, up to the edge and beyond it by its last byte, its last word, and more.
    for (size_t size = 1; size < 300; ++size) {
        CHECK(reads(pages + kPage - size, size));
        for (const size_t beyond : {size_t{1}, size / 2, size - 1, size})
            CHECK(beyond == 0 || !reads(pages + kPage - size + beyond, size));
    }
    CHECK(mprotect(pages, kPage, PROT_NONE) == 0);
    CHECK(!reads(pages, 8));
    // Write-only memory: the processor lets it be read, the kernel does not.
    CHECK(mprotect(pages, kPage, PROT_WRITE) == 0);
    pages[0] = 1;
    CHECK(reads(pages, 8) == !safe_read::kernel_chosen());
    munmap(pages, kPage);

    // Behind the end of a truncated file: SIGBUS, not SIGSEGV.
    const int fd = memfd_create("truncated", 0);
    CHECK(fd >= 0 && ftruncate(fd, 2 * kPage) == 0);
    auto* mapped =
        static_cast<uint8_t*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK(mapped != MAP_FAILED && reads(mapped + kPage, 8));
    CHECK(ftruncate(fd, kPage) == 0);
    CHECK(reads(mapped + kPage - 8, 8));
    CHECK(!reads(mapped + kPage, 8));
    CHECK(!reads(mapped + kPage - 4, 8));
    close(fd);
    munmap(mapped, 2 * kPage);
}

}  // namespace

TEST(safe_read_by_fault_handler) {
    fault::install();
    CHECK(fault::verify() && fault::trusted() && !safe_read::kernel_chosen());
    check_reads();
    fault::remove();
}

TEST(safe_read_by_the_kernel) {
    safe_read::use_kernel(true);
    CHECK(safe_read::kernel_chosen());
    check_reads();
    safe_read::use_kernel(false);
}

TEST(safe_read_of_pages_that_are_tried_first) {
    uint8_t* pages = map(2 * kPage, PROT_READ | PROT_WRITE);
    memset(pages, 0x5A, 2 * kPage);
    uint8_t bytes[64] = {};
    CHECK(safe_read::copy_checked(bytes, pages + kPage - 3, 40));
    CHECK(bytes[0] == 0x5A && bytes[39] == 0x5A && bytes[40] == 0);
    CHECK(safe_read::copy_checked(bytes, pages + 2 * kPage - 1, 1));
    CHECK(mprotect(pages + kPage, kPage, PROT_NONE) == 0);
    CHECK(safe_read::copy_checked(bytes, pages + kPage - 8, 8));
    CHECK(!safe_read::copy_checked(bytes, pages + kPage - 8, 9));
    munmap(pages, 2 * kPage);
    CHECK(!safe_read::copy_checked(bytes, pages, 1) && !safe_read::copy_checked(bytes, nullptr, 1));
}

TEST(safe_read_way_is_per_thread) {
    safe_read::use_kernel(true);
    std::thread([] { CHECK(!safe_read::kernel_chosen()); }).join();
    safe_read::use_kernel(false);
}

// Memory comes and goes while it is read: every read gives the bytes or says that it could not.
TEST(safe_read_while_memory_goes) {
    fault::install();
    uint8_t* page = map(kPage, PROT_READ | PROT_WRITE);
    memset(page, 0x5A, kPage);
    std::atomic<bool> done{false};
    std::atomic<uint32_t> failed{0};
    std::atomic<uint32_t> worked{0};
    std::thread readers[2];
    for (std::thread& reader : readers)
        reader = std::thread([&, kernel = &reader == &readers[1]] {
            safe_read::use_kernel(kernel);
            while (!done.load()) {
                uint64_t words[16];
                if (!safe_read::copy(words, page, sizeof words)) {
                    failed.fetch_add(1);
                    continue;
                }
                worked.fetch_add(1);
                for (const uint64_t word : words) CHECK(word == 0x5A5A5A5A5A5A5A5Aull);
            }
        });
    for (int round = 0; round < 300 || failed.load() == 0 || worked.load() == 0; ++round) {
        CHECK(mprotect(page, kPage, round % 2 == 0 ? PROT_NONE : PROT_READ) == 0);
        usleep(50);
    }
    done.store(true);
    for (std::thread& reader : readers) reader.join();
    fault::remove();
}

// One instruction, which says what it was given where nothing can be read; and the kernel is asked
// whether anything can be.
TEST(safe_read_peeks_at_one_word) {
    fault::install();
    uint8_t* pages = map(2 * kPage, PROT_READ | PROT_WRITE);
    CHECK(munmap(pages + kPage, kPage) == 0);
    const uint32_t word = 0x12345678;
    memcpy(pages + kPage - sizeof word, &word, sizeof word);
    const auto end = reinterpret_cast<uintptr_t>(pages) + kPage;
    CHECK(safe_read::readable(end - 4) && !safe_read::readable(end) && !safe_read::readable(36));
    CHECK(safe_read::peek(end - 4, 7) == word);
    for (const uint32_t otherwise : {0u, 7u, ~0u}) {
        CHECK(safe_read::peek(end - 3, otherwise) == otherwise);
        CHECK(safe_read::peek(end, otherwise) == otherwise);
        CHECK(safe_read::peek(36, otherwise) == otherwise);
    }
    fault::remove();
}
