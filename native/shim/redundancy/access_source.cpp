#include "redundancy/access_source.h"

#include "redundancy/decoder.h"
#include "tachograph/mixing.h"

#include <ucontext.h>

namespace tachograph::redundancy {
namespace {

bool prepare_decoder() {
    decoder::prepare();
    return true;
}

// Loads are many, and stores few: where both are wanted, every other sample looks for a store
// first.
operands::Next decode(const Sample& sample, const operands::Wanted& wanted, uint64_t* random,
                      operands::Access* out) {
    const auto* registers = sample.context->uc_mcontext.gregs;
    if (wanted.loads && wanted.stores && uniform(random) < 0.5) {
        operands::Wanted stores = wanted;
        stores.loads = false;
        if (operands::next(registers, stores, out) == operands::Next::found)
            return operands::Next::found;
    }
    return operands::next(registers, wanted, out);
}

constexpr AccessSource kSources[] = {
    {"decoder", prepare_decoder, decode},  // on every machine
};

}  // namespace

const AccessSource& choose_source() {
    for (const AccessSource& source : kSources)
        if (source.usable()) return source;
    return kSources[sizeof kSources / sizeof kSources[0] - 1];
}

}  // namespace tachograph::redundancy
