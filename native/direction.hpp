// The small computations of a step on the host: truncated power iterations (Algorithm 2), leading
// eigenvectors of blocks, and the step weight. They follow the NumPy functions of the same names in
// engines/algebra.py and engines/line_search.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace metricboost {

// The LAPACK routine of SciPy.
using Dsyevr = void (*)(char *, char *, char *, int *, double *, int *, double *, double *, int *,
                        int *, double *, int *, double *, double *, int *, int *, double *, int *,
                        int *, int *, int *);

// supports[s] = the kappa places at the end of the iterations that start from starts[s], in
// ascending order. A is symmetric (q x q).
void truncated_powers(const double *A, std::size_t q, const std::int32_t *starts, std::size_t count,
                      std::size_t kappa, std::int32_t *supports);

// For every run of places, the leading eigenvector of the block of A on these places, scattered
// into a row of `vectors` (count x q), and its eigenvalue. Run s is places[ends[s-1]] to
// places[ends[s] - 1]. The largest entry of a vector is positive.
void leading_eigenvectors(const double *A, std::size_t q, const std::int32_t *places,
                          const std::int32_t *ends, std::size_t count, Dsyevr dsyevr,
                          double *values, double *vectors);

// The minimiser of sum weight exp(-w gain) over 0 <= w <= bound.
double step_weight(const double *weight, const double *gain, std::size_t n);

}  // namespace metricboost
