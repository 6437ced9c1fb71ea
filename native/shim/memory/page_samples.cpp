#include "memory/page_samples.h"

#include "base/kernel.h"
#include "base/mixing.h"
#include "memory/blocks.h"
#include "memory/points.h"
#include "memory/resident_pages.h"
#include "stacks/modules.h"

namespace tachograph::page_samples {
namespace {

using resident_pages::kPage;

// Samples are followed, and there is room for some ten thousand; per second.
constexpr int64_t kFinestMean = 512 * 1024;
constexpr int64_t kCoarsestMean = int64_t{1} << 34;
constexpr uint32_t kMostSamples = 1200;
constexpr uint32_t kFewSamples = 300;
constexpr int64_t kAdaptNs = 1'000'000'000;

struct State {
    Points points{};
    int64_t mean = kFinestMean;
    uint32_t samples = 0;  // since `adapted_ns`
    int64_t adapted_ns = 0;
    uint64_t random = 0;
};
constinit State g;

// Fewer samples where there are too many in a second, more where there are few.
void adapt(int64_t now_ns) {
    const bool many = g.samples > kMostSamples;
    if (!many && now_ns - g.adapted_ns < kAdaptNs) return;
    if (many && g.mean < kCoarsestMean) g.mean *= 2;
    if (g.samples < kFewSamples && g.mean > kFinestMean) g.mean /= 2;
    g.samples = 0;
    g.adapted_ns = now_ns;
}

}  // namespace

void open() {
    g.random = mix(static_cast<uint64_t>(kernel::monotonic_ns()));
    g.points = first_points(&g.random, g.mean);
}

bool draw() {
    g.points.next -= static_cast<int64_t>(kPage);
    return g.points.next < 0;
}

void follow(uintptr_t address, const reserved_ranges::Page& page) {
    blocks::Block block{};
    block.time_ns = kernel::monotonic_ns();
    block.size = block.requested = static_cast<int64_t>(kPage);
    block.mean = g.mean;
    block.pc = page.pc;
    block.thread = page.thread;
    block.stack = page.stack;
    block.domain = TG_DOMAIN_MAPPED;
    block.stack_state = page.stack_state;
    block.page = true;
    if (block.pc != 0) modules::saw(block.pc);
    blocks::follow(reinterpret_cast<const void*>(address), block);
    ++g.samples;
    adapt(block.time_ns);
}

void next() { g.points = points_after(g.points, &g.random, g.mean); }

bool followed(uintptr_t page) {
    return blocks::maybe_followed(reinterpret_cast<const void*>(page));
}

void went(uintptr_t page) { blocks::died(reinterpret_cast<const void*>(page)); }

}  // namespace tachograph::page_samples
