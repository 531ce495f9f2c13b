// Terms: products of columns of a table. `x` is the transposed table (p x n). A term is a row of
// `degree` column numbers. Terms of lower degree are padded with p.
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

// moments[t] = mean and deviation of term t. The deviation is infinite if the term does not vary.
void term_moments(const Terms &terms, std::size_t threads, double *moments);

// out[i, t] = the standardised value of term t in row i, n x q.
void term_columns(const Terms &terms, const double *moments, std::size_t threads, double *out);

// out[c, t] = sum_i y[i, c] times the standardised value of term t in row i (s x q). y is n x s and
// has few columns. The function makes one pass over the table and stores no values of terms. The
// table may be in float32, because the time of the pass is the time to read the table from memory.
template <typename T>
void pull_back(const TermsOf<T> &terms, const double *moments, const double *y, std::size_t s,
               std::size_t threads, double *out);

}  // namespace metricboost
