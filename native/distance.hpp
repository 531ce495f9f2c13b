// The squared distance of two rows, from differences, so without cancellation.
#pragma once

#include <cstddef>

#include "lanes.hpp"
#include "multiversion.hpp"

namespace metricboost {

// Summed in eight interleaved parts: equal differences have equal distances.
INNER double squared_distance(const double *a, const double *b, std::size_t r) {
    Lanes part = {}, x, y;
    std::size_t i = 0;
    for (; i + LANES <= r; i += LANES) {
        load(a + i, x);
        load(b + i, y);
        const Lanes d = x - y;
        part += d * d;
    }
    if (i < r) {
        load_rest(a + i, r - i, x);
        load_rest(b + i, r - i, y);
        const Lanes d = x - y;
        part += d * d;
    }
    return added(part);
}

}  // namespace metricboost
