// The squared distance of two rows, from differences, so without cancellation.
#pragma once

#include <cstddef>

#include "multiversion.hpp"

namespace metricboost {

// Summed in eight interleaved parts: wide registers, and a fixed order of additions, so that equal
// differences have equal distances on every machine and engine.
INNER double squared_distance(const double *a, const double *b, std::size_t r) {
    double part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    std::size_t i = 0;
    for (; i + 8 <= r; i += 8)
        for (std::size_t c = 0; c < 8; ++c) {
            const double d = a[i + c] - b[i + c];
            part[c] += d * d;
        }
    for (std::size_t c = 0; i < r; ++i, ++c) {
        const double d = a[i] - b[i];
        part[c] += d * d;
    }
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

}  // namespace metricboost
