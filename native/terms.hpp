// Terms: products of columns of a table. `x` is the table transposed, p x n, a row a column of it; a
// term is a row of `degree` column numbers, and a number of p ends one of lower degree.
#pragma once

#include <cstddef>
#include <cstdint>

namespace metricboost {

template <typename T>
struct TermsOf {
    const T *x;
    std::size_t p, n;
    const std::int32_t *factors;  // q x degree
    std::size_t q, degree;
};
using Terms = TermsOf<double>;

// A term whose deviation is at most this share of its largest value does not vary.
constexpr double CONSTANT = 1e-10;

// moments[t] = mean and deviation of the product, an infinite deviation where it does not vary.
void term_moments(const Terms &terms, std::size_t threads, double *moments);

// out[i, t] = the standardised product, n x q.
void term_columns(const Terms &terms, const double *moments, std::size_t threads, double *out);

// out[c, t] = sum_i y[i, c] times the standardised product, s x q, for a y (n x s) of few columns:
// one pass over the table, and no product is kept. The table may be in float32: the pass takes as
// long as memory needs to give it.
template <typename T>
void pull_back(const TermsOf<T> &terms, const double *moments, const double *y, std::size_t s,
               std::size_t threads, double *out);

}  // namespace metricboost
