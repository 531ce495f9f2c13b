#include "kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "multiversion.hpp"

namespace metricboost {

namespace {

double mean_distance(const double *z, std::size_t i, std::size_t r, Neighbors near) {
    double sum = 0.0;
    for (std::size_t j = 0; j < near.k; ++j)
        sum += squared_distance(z + i * r, z + near.rows[i * near.k + j] * r, r);
    return sum / static_cast<double>(near.k);
}

}  // namespace

void margins(const double *z, std::size_t n, std::size_t r, Neighbors same, Neighbors other,
             double *out) {
    for (std::size_t i = 0; i < n; ++i)
        out[i] = mean_distance(z, i, r, other) - mean_distance(z, i, r, same);
}

namespace {

INNER void add_squared_differences(const double *a, const double *b, std::size_t q, double scale,
                             double *out) {
    for (std::size_t c = 0; c < q; ++c) {
        const double d = a[c] - b[c];
        out[c] += scale * (d * d);
    }
}

INNER void add_edge(const double *zi, const double *zj, std::size_t s, double weight, double *yi,
              double *yj) {
    for (std::size_t c = 0; c < s; ++c) {
        const double d = weight * (zi[c] - zj[c]);
        yi[c] += d;
        yj[c] -= d;
    }
}

}  // namespace

MULTIVERSION
void column_margins(const double *phi, std::size_t n, std::size_t q, std::size_t stride,
                    Neighbors same, Neighbors other, double *out) {
    // Tiles of columns: the rows of one tile stay in the second-level cache, and every row is
    // read some 2k times.
    constexpr std::size_t TILE = 64;
    std::fill(out, out + n * q, 0.0);
    for (std::size_t c = 0; c < q; c += TILE) {
        const std::size_t width = std::min(TILE, q - c);
        for (const auto &[near, sign] : {std::pair{other, 1.0}, std::pair{same, -1.0}}) {
            const double scale = sign / static_cast<double>(near.k);
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < near.k; ++j)
                    add_squared_differences(phi + i * stride + c,
                                            phi + near.rows[i * near.k + j] * stride + c, width,
                                            scale, out + i * q + c);
        }
    }
}

MULTIVERSION
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

MULTIVERSION
void edge_shares(const double *z, std::size_t n, std::size_t s, const double *weight,
                 Neighbors same, Neighbors other, double *out) {
    std::fill(out, out + n * s, 0.0);
    for (const auto &[near, sign] : {std::pair{other, 1.0}, std::pair{same, -1.0}}) {
        for (std::size_t i = 0; i < n; ++i) {
            if (weight[i] == 0.0) continue;
            const double w = sign * weight[i] / static_cast<double>(near.k);
            for (std::size_t j = 0; j < near.k; ++j) {
                const std::size_t row = near.rows[i * near.k + j];
                for (std::size_t c = 0; c < s; ++c) {
                    const double d = z[i * s + c] - z[row * s + c], share = w * (d * d);
                    out[i * s + c] += share;
                    out[row * s + c] += share;
                }
            }
        }
    }
}

namespace {

// Rows `from` to `from + rows` of a term's product, from the transposed table.
INNER void product(const double *x, std::size_t p, std::size_t n, const std::int32_t *factor,
             std::size_t degree, std::size_t from, std::size_t rows, double *out) {
    const double *first = x + factor[0] * n + from;
    for (std::size_t i = 0; i < rows; ++i) out[i] = first[i];
    for (std::size_t d = 1; d < degree && factor[d] < static_cast<std::int32_t>(p); ++d) {
        const double *column = x + factor[d] * n + from;
        for (std::size_t i = 0; i < rows; ++i) out[i] *= column[i];
    }
}

// Sums in eight interleaved parts: wide registers without reordering by the compiler.
INNER double sum_of_powers(const double *values, std::size_t n, double center, bool squared) {
    double part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::size_t c = 0; c < 8; ++c) {
            const double d = values[i + c] - center;
            part[c] += squared ? d * d : d;
        }
    for (std::size_t c = 0; i < n; ++i, ++c) {
        const double d = values[i] - center;
        part[c] += squared ? d * d : d;
    }
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

}  // namespace

MULTIVERSION
void term_moments(const double *x, std::size_t p, std::size_t n, const std::int32_t *factors,
                  std::size_t q, std::size_t degree, double *moments) {
    std::vector<double> column(n);
    const double count = static_cast<double>(n);
    for (std::size_t t = 0; t < q; ++t) {
        product(x, p, n, factors + t * degree, degree, 0, n, column.data());
        const double mean = sum_of_powers(column.data(), n, 0.0, false) / count;
        const double deviation = std::sqrt(sum_of_powers(column.data(), n, mean, true) / count);
        double largest = 0.0;
        for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(column[i]));
        moments[2 * t] = mean;
        moments[2 * t + 1] =
            deviation > CONSTANT * largest ? deviation : std::numeric_limits<double>::infinity();
    }
}

MULTIVERSION
void term_columns(const double *x, std::size_t p, std::size_t n, const std::int32_t *factors,
                  std::size_t q, std::size_t degree, const double *moments, double *out) {
    // Columns are read in runs and written across rows: a tile of rows stays in the cache.
    constexpr std::size_t TILE = 32;
    double run[TILE];
    for (std::size_t from = 0; from < n; from += TILE) {
        const std::size_t rows = std::min(TILE, n - from);
        for (std::size_t t = 0; t < q; ++t) {
            product(x, p, n, factors + t * degree, degree, from, rows, run);
            const double mean = moments[2 * t], factor = 1.0 / moments[2 * t + 1];
            for (std::size_t i = 0; i < rows; ++i)
                out[(from + i) * q + t] = (run[i] - mean) * factor;
        }
    }
}

MULTIVERSION
void pull_back(const double *x, std::size_t n, std::size_t q, std::size_t stride,
               const double *y, std::size_t s, double *out) {
    std::fill(out, out + s * q, 0.0);
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {  // four rows a pass: the sums are loaded and stored less often
        const double *x0 = x + i * stride, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;
        for (std::size_t c = 0; c < s; ++c) {
            const double y0 = y[i * s + c], y1 = y[(i + 1) * s + c], y2 = y[(i + 2) * s + c],
                         y3 = y[(i + 3) * s + c];
            double *sum = out + c * q;
            for (std::size_t t = 0; t < q; ++t)
                sum[t] += (y0 * x0[t] + y1 * x1[t]) + (y2 * x2[t] + y3 * x3[t]);
        }
    }
    for (; i < n; ++i)
        for (std::size_t c = 0; c < s; ++c)
            for (std::size_t t = 0; t < q; ++t) out[c * q + t] += y[i * s + c] * x[i * stride + t];
}

}  // namespace metricboost
