// The squared distance of two rows, computed from differences to avoid cancellation.
#pragma once

#include <cstddef>

#include "lanes.hpp"
#include "multiversion.hpp"

namespace metricboost {

// The sum has eight interleaved parts in a fixed order, so equal differences give equal distances.
INNER double squared_distance(const double *a, const double *b, std::size_t r) {
    Lanes part = {}, x, y;
    std::size_t i = 0;
    for (; i + LANES <= r; i += LANES) {
        load(a + i, x);
        load(b + i, y);
        const Lanes d = x - y;
        part += d * d;
    }
    if (i == r) return added(part);
    double sums[LANES];
    store(part, sums);
    for (std::size_t c = 0; i < r; ++i, ++c) {
        const double d = a[i] - b[i];
        sums[c] += d * d;
    }
    load(sums, part);
    return added(part);
}

}  // namespace metricboost
