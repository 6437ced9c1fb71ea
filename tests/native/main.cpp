// main TEST FOLDER: runs one test. Exit status 0: it passed.
#include "check.h"

#include <csignal>
#include <cstring>

namespace tests {
namespace {
Test* first = nullptr;
}

const char* folder = nullptr;

Test::Test(const char* named, void (*body)()) : name(named), run(body), next(first) {
    first = this;
}

}  // namespace tests

int main(int count, char** arguments) {
    if (count != 3) return 64;
    tests::folder = arguments[2];
    // As in a Python process: a limit on file sizes is an error, not a death.
    signal(SIGXFSZ, SIG_IGN);
    for (const tests::Test* test = tests::first; test; test = test->next) {
        if (strcmp(test->name, arguments[1]) != 0) continue;
        test->run();
        fflush(nullptr);
        return 0;
    }
    fprintf(stderr, "no test %s\n", arguments[1]);
    return 65;
}
