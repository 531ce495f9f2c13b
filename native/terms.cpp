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
constexpr std::size_t ROWS = 1024;   // rows in a run of pull_back; its part of y stays in the cache
constexpr std::size_t TOGETHER = 5;  // columns of y that are processed at once
constexpr std::size_t NARROW = 32;   // rows in a run of term_columns

// The product of term t in the rows `from` to `from + rows`, not standardised.
template <typename T>
INNER void product(const TermsOf<T> &terms, std::size_t t, std::size_t from, std::size_t rows,
                   double *out) {
    const std::int32_t *factor = terms.factors + t * terms.degree;
    const T *first = terms.x + factor[0] * terms.n + from;
    for (std::size_t i = 0; i < rows; ++i) out[i] = first[i];
    for (std::size_t d = 1; d < terms.degree && factor[d] < static_cast<std::int32_t>(terms.p); ++d) {
        const T *column = terms.x + factor[d] * terms.n + from;
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

// The standardised values of a term in a run of rows. Column is for values that are already
// standardised, and PairProduct for the product of two columns.
template <typename T>
struct Column {
    const T *values;

    INNER_MEMBER void at(std::size_t i, Lanes &x) const { load(values + i, x); }
    INNER_MEMBER void rest(std::size_t i, std::size_t count, Lanes &x) const {
        load_rest(values + i, count, x);
    }
};

template <typename T>
struct PairProduct {
    const T *first, *second;
    Lanes mean, scale;

    INNER_MEMBER void at(std::size_t i, Lanes &x) const {
        Lanes other;
        load(first + i, x);
        load(second + i, other);
        x = (x * other - mean) * scale;
    }
    // Beyond the last row the standardised product is not zero, but y is zero there.
    INNER_MEMBER void rest(std::size_t i, std::size_t count, Lanes &x) const {
        Lanes other;
        load_rest(first + i, count, x);
        load_rest(second + i, count, other);
        x = (x * other - mean) * scale;
    }
};

INNER void fill(double value, Lanes &lanes) {
    const double same[LANES] = {value, value, value, value, value, value, value, value};
    load(same, lanes);
}

// Adds the inner products of a run of values with S columns of y to S sums.
template <std::size_t S, typename Values>
INNER void add_products(const Values &values, const double *y, std::size_t y_stride,
                        std::size_t n, double *out, std::size_t out_stride) {
    Lanes part[S] = {}, x, column;
    std::size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        values.at(i, x);
        for (std::size_t s = 0; s < S; ++s) {
            load(y + s * y_stride + i, column);
            part[s] += x * column;
        }
    }
    if (i < n) {
        values.rest(i, n - i, x);
        for (std::size_t s = 0; s < S; ++s) {
            load_rest(y + s * y_stride + i, n - i, column);
            part[s] += x * column;
        }
    }
    for (std::size_t s = 0; s < S; ++s) out[s * out_stride] += added(part[s]);
}

template <typename Values>
INNER void add_all_products(const Values &values, const double *y, std::size_t y_stride,
                            std::size_t s, std::size_t n, double *out, std::size_t out_stride) {
    for (; s > 0; y += TOGETHER * y_stride, out += TOGETHER * out_stride) {
        const std::size_t count = std::min(s, TOGETHER);
        switch (count) {
            case 1: add_products<1>(values, y, y_stride, n, out, out_stride); break;
            case 2: add_products<2>(values, y, y_stride, n, out, out_stride); break;
            case 3: add_products<3>(values, y, y_stride, n, out, out_stride); break;
            case 4: add_products<4>(values, y, y_stride, n, out, out_stride); break;
            default: add_products<5>(values, y, y_stride, n, out, out_stride);
        }
        s -= count;
    }
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

// The sums for the terms `from` to `to`, one run of rows after the other. y is transposed (s x n).
template <typename T>
INNER void pull_back_terms(const TermsOf<T> &terms, const double *moments, const double *y,
                           std::size_t s, std::size_t from, std::size_t to, double *out) {
    double run[ROWS];
    for (std::size_t row = 0; row < terms.n; row += ROWS) {
        const std::size_t rows = std::min(ROWS, terms.n - row);
        for (std::size_t t = from; t < to; ++t) {
            const std::int32_t *factor = terms.factors + t * terms.degree;
            const double mean = moments[2 * t], scale = 1.0 / moments[2 * t + 1];
            const T *first = terms.x + factor[0] * terms.n + row;
            double *sums = out + t;
            const auto ends = [&](std::size_t d) {
                return d == terms.degree || factor[d] == static_cast<std::int32_t>(terms.p);
            };
            if (ends(1) && mean == 0.0 && scale == 1.0) {
                add_all_products(Column<T>{first}, y + row, terms.n, s, rows, sums, terms.q);
            } else if (!ends(1) && ends(2)) {
                const T *second = terms.x + factor[1] * terms.n + row;
                PairProduct<T> pair{first, second, {}, {}};
                fill(mean, pair.mean);
                fill(scale, pair.scale);
                add_all_products(pair, y + row, terms.n, s, rows, sums, terms.q);
            } else {
                product(terms, t, row, rows, run);
                for (std::size_t i = 0; i < rows; ++i) run[i] = (run[i] - mean) * scale;
                add_all_products(Column<double>{run}, y + row, terms.n, s, rows, sums, terms.q);
            }
        }
    }
}

MULTIVERSION
void pull_back_of(const TermsOf<double> &terms, const double *moments, const double *y,
                  std::size_t s, std::size_t from, std::size_t to, double *out) {
    pull_back_terms(terms, moments, y, s, from, to, out);
}

MULTIVERSION
void pull_back_of(const TermsOf<float> &terms, const double *moments, const double *y,
                  std::size_t s, std::size_t from, std::size_t to, double *out) {
    pull_back_terms(terms, moments, y, s, from, to, out);
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

template <typename T>
void pull_back(const TermsOf<T> &terms, const double *moments, const double *y, std::size_t s,
               std::size_t threads, double *out) {
    std::vector<double> transposed(terms.n * s);
    for (std::size_t i = 0; i < terms.n; ++i)
        for (std::size_t c = 0; c < s; ++c) transposed[c * terms.n + i] = y[i * s + c];
    std::fill(out, out + s * terms.q, 0.0);
    for_each_piece((terms.q + PIECE - 1) / PIECE, threads, [&](std::size_t piece, std::size_t) {
        pull_back_of(terms, moments, transposed.data(), s, piece * PIECE,
                     std::min((piece + 1) * PIECE, terms.q), out);
    });
}

template void pull_back(const TermsOf<double> &, const double *, const double *, std::size_t,
                        std::size_t, double *);
template void pull_back(const TermsOf<float> &, const double *, const double *, std::size_t,
                        std::size_t, double *);

}  // namespace metricboost
