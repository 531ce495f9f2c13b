// The distances of queries to the flats through their nearest rows of a class.
#pragma once

#include <cstddef>
#include <cstdint>

namespace metricboost {

struct Flats {
    const double *queries;     // n x r
    const double *references;  // m x r
    std::size_t n, r;
    const std::int32_t *rows;  // n x k: the references that the flat of a query goes through
    const double *weight;      // n x k: their weights
    std::size_t k;
    const double *ridges;
    std::size_t n_ridges;
    double floor;              // the smallest ridge
};

// out[i, j] = the squared distance of query i to its flat with ridge j, n x n_ridges.
void flat_distances(const Flats &flats, std::size_t threads, double *out);

}  // namespace metricboost
