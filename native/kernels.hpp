// The hot loops of sDist, on plain pointers: no Python, no allocation, row-major float64.
//
// Rows are samples. `same` and `other` hold, for every row, the row numbers of its neighbours of
// its own class and of the other class. Every kernel sums in a fixed order, so its result does
// not depend on the machine or on threads.
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
             double *out);

// out[i, c] = the same for every column by itself: the diagonal of D_i. phi is n x q, its rows
// `stride` apart.
void column_margins(const double *phi, std::size_t n, std::size_t q, std::size_t stride,
                    Neighbors same, Neighbors other, double *out);

// out = L z for the signed Laplacian L with edge weights +u_i/k (other) and -u_i/k (same).
// Rows with weight 0 are outside the bag. z and out are n x s; out is overwritten.
void laplacian(const double *z, std::size_t n, std::size_t s, const double *weight,
               Neighbors same, Neighbors other, double *out);

// out[a, c] = what the edges at row a, from either end, add to z_c' L z_c for every column of z
// (n x s): the shares of independent rows in a sum over edges that are not independent.
void edge_shares(const double *z, std::size_t n, std::size_t s, const double *weight,
                 Neighbors same, Neighbors other, double *out);

// A term whose deviation is at most this share of its largest value does not vary.
constexpr double CONSTANT = 1e-10;

// moments[t] = mean and deviation of the product of x[factors[t, .], :], an infinite deviation where
// it does not vary. x is p x n, a row a column of the table; a factor of p ends a term of lower
// degree.
void term_moments(const double *x, std::size_t p, std::size_t n, const std::int32_t *factors,
                  std::size_t q, std::size_t degree, double *moments);

// out[i, t] = the standardised product, n x q.
void term_columns(const double *x, std::size_t p, std::size_t n, const std::int32_t *factors,
                  std::size_t q, std::size_t degree, const double *moments, double *out);

// out[c, t] = sum_i y[i, c] x[i, t], for few columns of y: x is n x q with rows `stride` apart, y
// n x s, out s x q. One pass over x in the order of its rows, where a general product would pack it.
void pull_back(const double *x, std::size_t n, std::size_t q, std::size_t stride,
               const double *y, std::size_t s, double *out);

}  // namespace metricboost
