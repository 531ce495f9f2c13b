#include "graph.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "multiversion.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

constexpr std::size_t ROWS = 1024;       // of a piece of work
constexpr std::size_t COLUMNS = 16;      // of a piece of work, at least: whole lines of the cache
constexpr std::size_t PARTS = 4;         // sums of a large graph
constexpr std::size_t MANY = 1u << 22;   // edges times columns: a large graph

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

// What the edges of some rows add to both of their ends, in some columns. Of the Laplacian an edge
// adds its weighted difference to one end and takes it from the other; of the shares it adds the
// weighted square of the difference to both.
template <bool Squared>
INNER void scatter(const double *z, std::size_t s, const double *weight, Neighbors same,
                   Neighbors other, Range rows, Range columns, double *out) {
    const std::size_t width = columns.to - columns.from;
    z += columns.from;
    out += columns.from;
    for (const auto &[near, sign] : {std::pair{other, 1.0}, std::pair{same, -1.0}}) {
        for (std::size_t i = rows.from; i < rows.to; ++i) {
            if (weight[i] == 0.0) continue;
            const double w = sign * weight[i] / static_cast<double>(near.k);
            const double *zi = z + i * s;
            double *at_i = out + i * s;
            for (std::size_t j = 0; j < near.k; ++j) {
                const std::size_t row = near.rows[i * near.k + j];
                const double *zj = z + row * s;
                double *at_j = out + row * s;
                for (std::size_t c = 0; c < width; ++c) {
                    const double d = zi[c] - zj[c], share = Squared ? w * (d * d) : w * d;
                    at_i[c] += share;
                    at_j[c] += Squared ? share : -share;
                }
            }
        }
    }
}

MULTIVERSION
void laplacian_part(const double *z, std::size_t s, const double *weight, Neighbors same,
                    Neighbors other, Range rows, Range columns, double *out) {
    scatter<false>(z, s, weight, same, other, rows, columns, out);
}

MULTIVERSION
void edge_shares_part(const double *z, std::size_t s, const double *weight, Neighbors same,
                      Neighbors other, Range rows, Range columns, double *out) {
    scatter<true>(z, s, weight, same, other, rows, columns, out);
}

// Many columns are shared by columns; few columns of a large graph by rows, in PARTS sums that are
// added in order; all else is one piece.
template <typename Part>
void over_edges(std::size_t n, std::size_t s, std::size_t edges, std::size_t threads, double *out,
                Part part) {
    std::fill(out, out + n * s, 0.0);
    if (s >= 2 * COLUMNS) {
        const std::size_t share = (s + threads - 1) / std::max<std::size_t>(threads, 1);
        const std::size_t width = std::max(COLUMNS, share);  // of no account to any sum
        for_each_piece((s + width - 1) / width, threads, [&](std::size_t piece, std::size_t) {
            part(Range{0, n}, Range{piece * width, std::min((piece + 1) * width, s)}, out);
        });
        return;
    }
    if (edges * s < MANY) {
        part(Range{0, n}, Range{0, s}, out);
        return;
    }
    std::vector<double> sums((PARTS - 1) * n * s, 0.0);
    const std::size_t size = (n + PARTS - 1) / PARTS;
    for_each_piece(PARTS, threads, [&](std::size_t piece, std::size_t) {
        double *sum = piece == 0 ? out : sums.data() + (piece - 1) * n * s;
        part(Range{piece * size, std::min((piece + 1) * size, n)}, Range{0, s}, sum);
    });
    for_rows(n, threads, [&](Range rows) {
        for (std::size_t i = rows.from * s; i < rows.to * s; ++i)
            for (std::size_t piece = 0; piece + 1 < PARTS; ++piece)
                out[i] += sums[piece * n * s + i];
    });
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

void laplacian(const double *z, std::size_t n, std::size_t s, const double *weight, Neighbors same,
               Neighbors other, std::size_t threads, double *out) {
    over_edges(n, s, n * (same.k + other.k), threads, out,
               [&](Range rows, Range columns, double *sum) {
                   laplacian_part(z, s, weight, same, other, rows, columns, sum);
               });
}

void edge_shares(const double *z, std::size_t n, std::size_t s, const double *weight,
                 Neighbors same, Neighbors other, std::size_t threads, double *out) {
    over_edges(n, s, n * (same.k + other.k), threads, out,
               [&](Range rows, Range columns, double *sum) {
                   edge_shares_part(z, s, weight, same, other, rows, columns, sum);
               });
}

}  // namespace metricboost
