// The signed neighbour graph: edges of weight +u_i/k to the rows of the other class nearest to row
// i, and of -u_i/k to those of its own.
//
// Every row gathers what all edges at it add, from either end, in a fixed order: rows are shared
// among threads, and no result depends on how many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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

// The rows that have each row among their neighbours: rows[starts[j] .. starts[j + 1]], in order;
// those that have it as one of their own class first, up to middles[j].
struct Followers {
    const std::int32_t *rows;
    const std::int64_t *starts, *middles;
};

// Fills rows (n (k_same + k_other)), starts (n + 1) and middles (n).
void find_followers(std::size_t n, Neighbors same, Neighbors other, std::int32_t *rows,
                    std::int64_t *starts, std::int64_t *middles);

// out = L z for the signed Laplacian L. Rows with weight 0 are outside the bag: only edges from
// rows inside count. z and out are n x s.
void laplacian(const double *z, std::size_t n, std::size_t s, const double *weight, Neighbors same,
               Neighbors other, Followers followers, std::size_t threads, double *out);

// out[a, c] = what the edges at row a, from either end, add to z_c' L z_c for every column of z
// (n x s): the shares of independent rows in a sum over edges that are not independent.
void edge_shares(const double *z, std::size_t n, std::size_t s, const double *weight,
                 Neighbors same, Neighbors other, Followers followers, std::size_t threads,
                 double *out);

}  // namespace metricboost
