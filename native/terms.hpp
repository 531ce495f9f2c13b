// Terms: products of columns of a table. `x` is the transposed table (p x n). A term is a row of
// `degree` column numbers. Terms of lower degree are padded with p.
#pragma once

#include <cstddef>
#include <cstdint>

namespace metricboost {

struct Terms {
    const double *x;
    std::size_t p, n;
    const std::int32_t *factors;  // q x degree
    std::size_t q, degree;
};

// A term whose deviation is at most this share of its largest value does not vary.
constexpr double CONSTANT = 1e-10;

// moments[t] = mean and deviation of term t. The deviation is infinite if the term does not vary.
void term_moments(const Terms &terms, std::size_t threads, double *moments);

// out[i, t] = the standardised value of term t in row i, n x q.
void term_columns(const Terms &terms, const double *moments, std::size_t threads, double *out);

}  // namespace metricboost
