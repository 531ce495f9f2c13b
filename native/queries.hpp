// Exact search for the nearest references of queries, which are other rows than the references.
//
// Approximate distances of a block of queries to all references are computed by matrix products. The
// references that may be among the k nearest, with an allowance for rounding, are ordered by
// distances computed from differences in float64. The order is the same as in nearest.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blas.hpp"

namespace metricboost {

// Rows of r numbers.
struct Points {
    const double *data;
    std::size_t n, r;

    const double *row(std::size_t i) const { return data + i * r; }
};

// rows and distances are (number of queries) x k. k is at most the number of references.
void nearest_of_queries(const Points &queries, const Points &references, std::size_t k,
                        const Blas &blas, std::size_t threads, std::int32_t *rows,
                        double *distances);

}  // namespace metricboost
