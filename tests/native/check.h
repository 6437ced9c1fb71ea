// The whole test framework: TEST(name) { CHECK(...); }, one process per test.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tests {

// Where the test may write: a fresh folder.
extern const char* folder;

struct Test {
    Test(const char* named, void (*body)());
    const char* name;
    void (*run)();
    Test* next;
};

[[noreturn]] inline void fail(const char* what, const char* file, int line) {
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    fflush(nullptr);
    _Exit(1);
}

}  // namespace tests

#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition)) tests::fail(#condition, __FILE__, __LINE__); \
    } while (false)

#define TEST(name)                                   \
    static void name();                              \
    static tests::Test register_##name(#name, name); \
    static void name()

#if defined(__SANITIZE_THREAD__)
#define TG_THREAD_SANITIZER 1
#else
#define TG_THREAD_SANITIZER 0
#endif

namespace tests {

// How many rounds one thread makes that only computes: sanitizers see nothing new in the others.
constexpr int rounds(int all) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return all / 10;
#else
    return all;
#endif
}

}  // namespace tests
