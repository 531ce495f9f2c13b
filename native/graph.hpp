// The signed neighbour graph: edges of weight +u_i/k to the rows of the other class nearest to row
// i, and of -u_i/k to those of its own.
//
// Work is shared among threads in pieces that the sizes alone decide, and every sum has a fixed
// order: no result depends on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace metricboost {

struct Neighbors {
    const std::int32_t *rows;  // n x k
    std::size_t k;
};

// out[i] = mean over other of |z_i - z_j|^2 minus the mean over same; z is n x r.
void margins(const double *z, std::size_t n, std::size_t r, Neighbors same, Neighbors other,
             std::size_t threads, double *out);

// out[i, c] = the same for every column by itself: the diagonal of D_i. phi is n x q.
template <typename T>
void column_margins(const double *phi, std::size_t n, std::size_t q, Neighbors same,
                    Neighbors other, std::size_t threads, T *out);

// out = L z for the signed Laplacian L. Rows with weight 0 are outside the bag: only edges from
// rows inside count. z and out are n x s.
void laplacian(const double *z, std::size_t n, std::size_t s, const double *weight, Neighbors same,
               Neighbors other, std::size_t threads, double *out);

// out[a, c] = what the edges at row a, from either end, add to z_c' L z_c for every column of z
// (n x s): the shares of independent rows in a sum over edges that are not independent.
void edge_shares(const double *z, std::size_t n, std::size_t s, const double *weight,
                 Neighbors same, Neighbors other, std::size_t threads, double *out);

}  // namespace metricboost
