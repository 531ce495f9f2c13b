// Exact search for the nearest rows by comparing all pairs of rows, for tables with few rows.
//
// Approximate distances of a block of queries to all references are computed by matrix products.
// The references that may be among the k nearest, with an allowance for rounding, are ordered by
// distances computed from differences in float64. The order is the same as in nearest.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blas.hpp"
#include "nearest.hpp"

namespace metricboost {

// Rows of r numbers.
struct Points {
    const double *data;
    std::size_t n, r;

    const double *row(std::size_t i) const { return data + i * r; }
};

// The k nearest references of every query. rows and distances are (number of queries) x k. k is at
// most the number of references.
void nearest_of_queries(const Points &queries, const Points &references, std::size_t k,
                        const Blas &blas, std::size_t threads, std::int32_t *rows,
                        double *distances);

// The neighbours of every row in every list, as in nearest.hpp.
void nearest_directly(const Table &table, const std::int32_t *classes, const Lists &lists,
                      const Blas &blas, std::size_t threads, std::int32_t *rows,
                      double *distances);

}  // namespace metricboost
