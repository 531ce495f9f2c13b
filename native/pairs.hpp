// Pairs of columns whose products differ in mean between the classes, in float32 with error bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace metricboost {

// The columns of a table, centred within each class. The rows of a class are adjacent.
struct Classes {
    const double *x;           // p x n
    std::size_t p, n;
    const std::int32_t *ends;  // of the rows of each class
    std::size_t count;

    double size(std::size_t c) const { return ends[c] - (c > 0 ? ends[c - 1] : 0); }
};

// A pair belongs to the result if its score is above the bar. Scores are defined in
// engines/pairs.py. With `prior` > 0 the variances are shrunk, as if the common variance had been
// observed on `prior` additional rows.
struct Bar {
    double score, prior;
    std::size_t wanted;  // number of best pairs that the caller needs
};

struct Pair {
    float low, high;  // bounds on the square of the score
    std::int32_t a, b;
};

// The `wanted` best pairs above the bar, and others that may be above the bar.
std::vector<Pair> pairs_above(const Classes &classes, const Bar &bar, std::size_t threads);

}  // namespace metricboost
