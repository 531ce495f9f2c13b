#include "terms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lanes.hpp"
#include "multiversion.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

constexpr std::size_t PIECE = 64;    // number of terms, or of runs of rows, in a piece of work
constexpr std::size_t NARROW = 32;   // rows in a run of term_columns

// The product of term t in the rows `from` to `from + rows`, not standardised.
INNER void product(const Terms &terms, std::size_t t, std::size_t from, std::size_t rows,
                   double *out) {
    const std::int32_t *factor = terms.factors + t * terms.degree;
    const double *first = terms.x + factor[0] * terms.n + from;
    for (std::size_t i = 0; i < rows; ++i) out[i] = first[i];
    for (std::size_t d = 1; d < terms.degree && factor[d] < static_cast<std::int32_t>(terms.p); ++d) {
        const double *column = terms.x + factor[d] * terms.n + from;
        for (std::size_t i = 0; i < rows; ++i) out[i] *= column[i];
    }
}

INNER double sum_of_powers(const double *values, std::size_t n, double center, bool squared) {
    double part[LANES] = {0, 0, 0, 0, 0, 0, 0, 0};
    std::size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (std::size_t c = 0; c < LANES; ++c) {
            const double d = values[i + c] - center;
            part[c] += squared ? d * d : d;
        }
    for (std::size_t c = 0; i < n; ++i, ++c) {
        const double d = values[i] - center;
        part[c] += squared ? d * d : d;
    }
    Lanes together;
    load(part, together);
    return added(together);
}

MULTIVERSION
void moments_of(const Terms &terms, std::size_t from, std::size_t to, double *moments) {
    std::vector<double> column(terms.n);
    const double count = static_cast<double>(terms.n);
    for (std::size_t t = from; t < to; ++t) {
        product(terms, t, 0, terms.n, column.data());
        const double mean = sum_of_powers(column.data(), terms.n, 0.0, false) / count;
        const double deviation =
            std::sqrt(sum_of_powers(column.data(), terms.n, mean, true) / count);
        double largest = 0.0;
        for (std::size_t i = 0; i < terms.n; ++i) largest = std::max(largest, std::abs(column[i]));
        moments[2 * t] = mean;
        moments[2 * t + 1] =
            deviation > CONSTANT * largest ? deviation : std::numeric_limits<double>::infinity();
    }
}

// The loop over runs of rows is outside the loop over terms, so that the rows written stay in the
// cache.
MULTIVERSION
void columns_of(const Terms &terms, const double *moments, std::size_t from, std::size_t to,
                double *out) {
    double run[NARROW];
    for (; from < to; from += NARROW) {
        const std::size_t rows = std::min(NARROW, to - from);
        for (std::size_t t = 0; t < terms.q; ++t) {
            product(terms, t, from, rows, run);
            const double mean = moments[2 * t], factor = 1.0 / moments[2 * t + 1];
            for (std::size_t i = 0; i < rows; ++i)
                out[(from + i) * terms.q + t] = (run[i] - mean) * factor;
        }
    }
}

}  // namespace

void term_moments(const Terms &terms, std::size_t threads, double *moments) {
    for_each_piece((terms.q + PIECE - 1) / PIECE, threads, [&](std::size_t piece, std::size_t) {
        moments_of(terms, piece * PIECE, std::min((piece + 1) * PIECE, terms.q), moments);
    });
}

void term_columns(const Terms &terms, const double *moments, std::size_t threads, double *out) {
    constexpr std::size_t SIZE = PIECE * NARROW;
    for_each_piece((terms.n + SIZE - 1) / SIZE, threads, [&](std::size_t piece, std::size_t) {
        columns_of(terms, moments, piece * SIZE, std::min((piece + 1) * SIZE, terms.n), out);
    });
}

}  // namespace metricboost
