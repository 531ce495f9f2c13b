#include "graph.hpp"

#include <algorithm>
#include <utility>

#include "distance.hpp"
#include "multiversion.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

constexpr std::size_t ROWS = 1024;  // of a piece of work

struct Range {
    std::size_t from, to;
};

// Rows in pieces of a fixed size.
template <typename Run>
void for_rows(std::size_t n, std::size_t threads, Run run) {
    for_each_piece((n + ROWS - 1) / ROWS, threads, [&](std::size_t piece, std::size_t) {
        run(Range{piece * ROWS, std::min((piece + 1) * ROWS, n)});
    });
}

double mean_distance(const double *z, std::size_t i, std::size_t r, Neighbors near) {
    double sum = 0.0;
    for (std::size_t j = 0; j < near.k; ++j)
        sum += squared_distance(z + i * r, z + near.rows[i * near.k + j] * r, r);
    return sum / static_cast<double>(near.k);
}

template <typename T>
INNER void column_margins_of(const double *phi, std::size_t q, Neighbors same, Neighbors other,
                             Range rows, T *out) {
    // Tiles of columns: the rows of one tile stay in the cache, and every row is read 2k times.
    constexpr std::size_t TILE = 64;
    double sum[TILE];
    for (std::size_t c = 0; c < q; c += TILE) {
        const std::size_t width = std::min(TILE, q - c);
        for (std::size_t i = rows.from; i < rows.to; ++i) {
            const double *own = phi + i * q + c;
            std::fill(sum, sum + width, 0.0);
            for (const auto &[near, sign] : {std::pair{other, 1.0}, std::pair{same, -1.0}}) {
                const double scale = sign / static_cast<double>(near.k);
                for (std::size_t j = 0; j < near.k; ++j) {
                    const double *its = phi + near.rows[i * near.k + j] * q + c;
                    for (std::size_t t = 0; t < width; ++t) {
                        const double d = own[t] - its[t];
                        sum[t] += scale * (d * d);
                    }
                }
            }
            for (std::size_t t = 0; t < width; ++t) out[i * q + c + t] = static_cast<T>(sum[t]);
        }
    }
}

MULTIVERSION
void column_margins_part(const double *phi, std::size_t q, Neighbors same, Neighbors other,
                         Range rows, double *out) {
    column_margins_of(phi, q, same, other, rows, out);
}

MULTIVERSION
void column_margins_part(const double *phi, std::size_t q, Neighbors same, Neighbors other,
                         Range rows, float *out) {
    column_margins_of(phi, q, same, other, rows, out);
}

// Adds weight * (z_i - z_j), or its product with itself, to sum.
template <bool Squared>
INNER void add_edge(const double *zi, const double *zj, std::size_t s, double weight, double *sum) {
    for (std::size_t c = 0; c < s; ++c) {
        const double d = zi[c] - zj[c];
        sum[c] += Squared ? weight * (d * d) : weight * d;
    }
}

// For every row the sum over the edges at it: those to its neighbours, and those of its followers.
template <bool Squared>
INNER void gather(const double *z, std::size_t s, const double *weight, Neighbors same,
                  Neighbors other, Followers followers, Range rows, double *out) {
    const double per_same = -1.0 / static_cast<double>(same.k);
    const double per_other = 1.0 / static_cast<double>(other.k);
    for (std::size_t i = rows.from; i < rows.to; ++i) {
        const double *zi = z + i * s;
        double *sum = out + i * s;
        std::fill(sum, sum + s, 0.0);
        if (weight[i] != 0.0) {
            for (const auto &[near, per] : {std::pair{other, per_other}, std::pair{same, per_same}})
                for (std::size_t j = 0; j < near.k; ++j)
                    add_edge<Squared>(zi, z + near.rows[i * near.k + j] * s, s, per * weight[i],
                                      sum);
        }
        for (std::int64_t e = followers.starts[i]; e < followers.starts[i + 1]; ++e) {
            const std::size_t row = followers.rows[e];
            if (weight[row] == 0.0) continue;
            const double per = e < followers.middles[i] ? per_same : per_other;
            add_edge<Squared>(zi, z + row * s, s, per * weight[row], sum);
        }
    }
}

MULTIVERSION
void laplacian_part(const double *z, std::size_t s, const double *weight, Neighbors same,
                    Neighbors other, Followers followers, Range rows, double *out) {
    gather<false>(z, s, weight, same, other, followers, rows, out);
}

MULTIVERSION
void edge_shares_part(const double *z, std::size_t s, const double *weight, Neighbors same,
                      Neighbors other, Followers followers, Range rows, double *out) {
    gather<true>(z, s, weight, same, other, followers, rows, out);
}

}  // namespace

void margins(const double *z, std::size_t n, std::size_t r, Neighbors same, Neighbors other,
             std::size_t threads, double *out) {
    for_rows(n, threads, [&](Range rows) {
        for (std::size_t i = rows.from; i < rows.to; ++i)
            out[i] = mean_distance(z, i, r, other) - mean_distance(z, i, r, same);
    });
}

template <typename T>
void column_margins(const double *phi, std::size_t n, std::size_t q, Neighbors same,
                    Neighbors other, std::size_t threads, T *out) {
    for_rows(n, threads, [&](Range rows) { column_margins_part(phi, q, same, other, rows, out); });
}

template void column_margins(const double *, std::size_t, std::size_t, Neighbors, Neighbors,
                             std::size_t, double *);
template void column_margins(const double *, std::size_t, std::size_t, Neighbors, Neighbors,
                             std::size_t, float *);

void find_followers(std::size_t n, Neighbors same, Neighbors other, std::int32_t *rows,
                    std::int64_t *starts, std::int64_t *middles) {
    std::fill(starts, starts + n + 1, 0);
    std::fill(middles, middles + n, 0);
    for (std::size_t e = 0; e < n * same.k; ++e) ++middles[same.rows[e]];
    for (std::size_t e = 0; e < n * other.k; ++e) ++starts[other.rows[e] + 1];
    for (std::size_t j = 0; j < n; ++j) {
        starts[j + 1] += starts[j] + middles[j];
        middles[j] += starts[j];
    }
    std::vector<std::int64_t> next_same(starts, starts + n), next_other(middles, middles + n);
    for (std::size_t i = 0; i < n; ++i) {
        const auto row = static_cast<std::int32_t>(i);
        for (std::size_t j = 0; j < same.k; ++j) rows[next_same[same.rows[i * same.k + j]]++] = row;
        for (std::size_t j = 0; j < other.k; ++j)
            rows[next_other[other.rows[i * other.k + j]]++] = row;
    }
}

void laplacian(const double *z, std::size_t n, std::size_t s, const double *weight, Neighbors same,
               Neighbors other, Followers followers, std::size_t threads, double *out) {
    for_rows(n, threads, [&](Range rows) {
        laplacian_part(z, s, weight, same, other, followers, rows, out);
    });
}

void edge_shares(const double *z, std::size_t n, std::size_t s, const double *weight,
                 Neighbors same, Neighbors other, Followers followers, std::size_t threads,
                 double *out) {
    for_rows(n, threads, [&](Range rows) {
        edge_shares_part(z, s, weight, same, other, followers, rows, out);
    });
}

}  // namespace metricboost
