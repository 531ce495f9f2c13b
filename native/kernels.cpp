#include "kernels.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

// One binary, several instruction sets: the loader picks the widest the machine has.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MULTIVERSION
#endif

namespace metricboost {

namespace {

double squared_distance(const double *a, const double *b, std::size_t r) {
    double sum = 0.0;
    for (std::size_t c = 0; c < r; ++c) {
        const double d = a[c] - b[c];
        sum += d * d;
    }
    return sum;
}

double mean_distance(const double *z, std::size_t i, std::size_t r, Neighbors near) {
    double sum = 0.0;
    for (std::size_t j = 0; j < near.k; ++j)
        sum += squared_distance(z + i * r, z + near.rows[i * near.k + j] * r, r);
    return sum / static_cast<double>(near.k);
}

// A row of x with a 1 behind it, so that terms of lower degree need no branch.
void padded_row(const double *x, std::size_t i, std::size_t p, std::vector<double> &row) {
    std::copy(x + i * p, x + (i + 1) * p, row.begin());
    row[p] = 1.0;
}

inline double product(const double *row, const std::int32_t *factor, std::size_t degree) {
    double value = row[factor[0]];
    for (std::size_t d = 1; d < degree; ++d) value *= row[factor[d]];
    return value;
}

}  // namespace

void margins(const double *z, std::size_t n, std::size_t r, Neighbors same, Neighbors other,
             double *out) {
    for (std::size_t i = 0; i < n; ++i)
        out[i] = mean_distance(z, i, r, other) - mean_distance(z, i, r, same);
}

namespace {

MULTIVERSION
void add_squared_differences(const double *a, const double *b, std::size_t q, double scale,
                             double *out) {
    for (std::size_t c = 0; c < q; ++c) {
        const double d = a[c] - b[c];
        out[c] += scale * (d * d);
    }
}

MULTIVERSION
void add_edge(const double *zi, const double *zj, std::size_t s, double weight, double *yi,
              double *yj) {
    for (std::size_t c = 0; c < s; ++c) {
        const double d = weight * (zi[c] - zj[c]);
        yi[c] += d;
        yj[c] -= d;
    }
}

}  // namespace

void column_margins(const double *phi, std::size_t n, std::size_t q, Neighbors same,
                    Neighbors other, double *out) {
    std::fill(out, out + n * q, 0.0);
    for (const auto &[near, sign] : {std::pair{other, 1.0}, std::pair{same, -1.0}}) {
        const double scale = sign / static_cast<double>(near.k);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < near.k; ++j)
                add_squared_differences(phi + i * q, phi + near.rows[i * near.k + j] * q, q,
                                        scale, out + i * q);
    }
}

void laplacian(const double *z, std::size_t n, std::size_t s, const double *weight,
               Neighbors same, Neighbors other, double *out) {
    std::fill(out, out + n * s, 0.0);
    for (const auto &[near, sign] : {std::pair{other, 1.0}, std::pair{same, -1.0}}) {
        for (std::size_t i = 0; i < n; ++i) {
            if (weight[i] == 0.0) continue;
            const double w = sign * weight[i] / static_cast<double>(near.k);
            for (std::size_t j = 0; j < near.k; ++j) {
                const std::size_t row = near.rows[i * near.k + j];
                add_edge(z + i * s, z + row * s, s, w, out + i * s, out + row * s);
            }
        }
    }
}

void edge_shares(const double *z, std::size_t n, const double *weight, Neighbors same,
                 Neighbors other, double *out) {
    std::fill(out, out + n, 0.0);
    for (const auto &[near, sign] : {std::pair{other, 1.0}, std::pair{same, -1.0}}) {
        for (std::size_t i = 0; i < n; ++i) {
            if (weight[i] == 0.0) continue;
            const double w = sign * weight[i] / static_cast<double>(near.k);
            for (std::size_t j = 0; j < near.k; ++j) {
                const std::size_t row = near.rows[i * near.k + j];
                const double d = z[i] - z[row], share = w * (d * d);
                out[i] += share;
                out[row] += share;
            }
        }
    }
}

void term_columns(const double *x, std::size_t n, std::size_t p, const std::int32_t *factors,
                  std::size_t q, std::size_t degree, const double *mean, const double *scale,
                  double *out) {
    for (std::size_t i = 0; i < n; ++i) {
        const double *row = x + i * p;
        for (std::size_t t = 0; t < q; ++t) {
            const std::int32_t *factor = factors + t * degree;
            double value = row[factor[0]];  // the padding comes last
            for (std::size_t d = 1; d < degree && factor[d] < static_cast<std::int32_t>(p); ++d)
                value *= row[factor[d]];
            out[i * q + t] = (value - mean[t]) / scale[t];
        }
    }
}

void pull_back_products(const double *x, std::size_t n, std::size_t p,
                        const std::int32_t *factors, std::size_t q, std::size_t degree,
                        const double *y, std::size_t s, double *out) {
    std::vector<double> row(p + 1);
    std::fill(out, out + q * s, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        padded_row(x, i, p, row);
        const double *yi = y + i * s;
        for (std::size_t t = 0; t < q; ++t) {
            const double value = product(row.data(), factors + t * degree, degree);
            for (std::size_t c = 0; c < s; ++c) out[t * s + c] += value * yi[c];
        }
    }
}

namespace {

// The columns of a row fall into LANES classes modulo LANES. The k-th smallest of the classes'
// minima bounds the row's k-th smallest entry from above, and few entries lie below it: most
// of a row is read twice, in wide registers, and never sorted.
constexpr std::size_t LANES = 64;

MULTIVERSION
void lane_minima(const double *row, std::size_t m, double *minima) {
    std::copy(row, row + LANES, minima);
    std::size_t j = LANES;
    for (; j + LANES <= m; j += LANES)
        for (std::size_t c = 0; c < LANES; ++c)
            minima[c] = row[j + c] < minima[c] ? row[j + c] : minima[c];
    for (std::size_t c = 0; j + c < m; ++c)
        minima[c] = row[j + c] < minima[c] ? row[j + c] : minima[c];
}

double upper_bound_of_kth(const double *row, std::size_t m, std::size_t k) {
    if (m < 2 * LANES || k > LANES) return std::numeric_limits<double>::infinity();
    double minima[LANES];
    lane_minima(row, m, minima);
    std::nth_element(minima, minima + (k - 1), minima + LANES);
    return minima[k - 1];
}

}  // namespace

void smallest(const double *d, std::size_t rows, std::size_t m, std::size_t k,
              std::int32_t *out) {
    std::vector<std::pair<double, std::int32_t>> found;
    found.reserve(m);
    for (std::size_t i = 0; i < rows; ++i) {
        const double *row = d + i * m;
        const double bound = upper_bound_of_kth(row, m, k);
        found.clear();
        for (std::size_t j = 0; j < m; ++j)
            if (row[j] <= bound) found.emplace_back(row[j], static_cast<std::int32_t>(j));
        std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(k),
                          found.end());
        for (std::size_t j = 0; j < k; ++j) out[i * k + j] = found[j].second;
    }
}

void paired_squared_distances(const double *a, const double *b, std::size_t rows,
                              std::size_t r, const std::int32_t *index, std::size_t k,
                              double *out) {
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < k; ++j)
            out[i * k + j] = squared_distance(a + i * r, b + index[i * k + j] * r, r);
}

}  // namespace metricboost
