// Memory of C++: vectors and nodes of a map that live, beside those that are released again.
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Held {
    std::vector<std::vector<double>> columns;
    std::map<int, std::string> names;
    std::vector<std::unique_ptr<char[]>> pages;
};
Held* g_held = nullptr;

}  // namespace

// Bytes that it holds from now on, as malloc hands them out.
extern "C" std::size_t hold() {
    g_held = new Held;
    std::size_t bytes = 0;
    for (int i = 0; i < 40; ++i) {
        g_held->columns.emplace_back(std::vector<double>(200'000, 1.5));
        bytes += 200'000 * sizeof(double);
    }
    for (int i = 0; i < 100'000; ++i) {
        g_held->names.emplace(i, std::string(300, 'x'));
        bytes += 304 + 80;  // the text with its end, and the node with its links
    }
    for (int i = 0; i < 4'000; ++i) {
        g_held->pages.emplace_back(new char[9'000]());
        bytes += 9'000;
    }
    std::vector<double> dropped(3'000'000, 2.5);
    return bytes + (dropped.empty() ? 1 : 0);
}
