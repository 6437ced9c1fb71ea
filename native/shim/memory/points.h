// Where samples of a stream of bytes fall: one point in each stretch of `mean` bytes, anywhere in
// it.
//
// Every byte has the same chance to hold a point, as with independent gaps. But what is allocated
// in one go holds as many points as it has stretches, give or take one, where independent gaps are
// off by the root of that number (stratified sampling: Cochran, Sampling Techniques, 1977, chapter
// 5; as the point is anywhere in its stretch, no loop can keep step with them).
#pragma once

#include "tachograph/mixing.h"

#include <cstdint>

namespace tachograph {

struct Points {
    int64_t next;  // bytes before the next point
    int64_t rest;  // from that point to the end of its stretch
};

// The next point when `into` bytes of a stretch have gone by.
inline Points points_from(uint64_t* random, int64_t mean, int64_t into) {
    const auto anywhere = [&] {
        return static_cast<int64_t>(uniform(random) * static_cast<double>(mean));
    };
    int64_t point = anywhere();
    if (point >= into) return {point - into, mean - point};
    // Its point has gone by as well.
    point = anywhere();
    return {mean - into + point, mean - point};
}

// The first point of a stream that begins anywhere in a stretch.
inline Points first_points(uint64_t* random, int64_t mean) {
    return points_from(random, mean,
                       static_cast<int64_t>(uniform(random) * static_cast<double>(mean)));
}

// The next point behind a block that held one; `next` is negative: it has gone so far beyond it.
inline Points points_after(const Points& held, uint64_t* random, int64_t mean) {
    const int64_t left = held.rest + held.next;
    if (left < 0) return points_from(random, mean, -left % mean);  // what lay in it is one sample
    const Points fresh = points_from(random, mean, 0);
    return {left + fresh.next, fresh.rest};
}

}  // namespace tachograph
