#include "graph.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <type_traits>

#include "distance.hpp"
#include "multiversion.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

constexpr std::size_t ROWS = 1024;  // number of rows in a piece of work

using Range = Graph::Range;

// Calls run(range) for the rows in pieces of ROWS rows.
template <typename Run>
void for_rows(std::size_t n, std::size_t threads, Run run) {
    for_each_piece((n + ROWS - 1) / ROWS, threads, [&](std::size_t piece, std::size_t) {
        run(Range{piece * ROWS, std::min((piece + 1) * ROWS, n)});
    });
}

// out[c] = the weighted sum of z_ic - z_jc, or of its square, over the ends j of the edges at row
// i, for S columns c. Rows of z are `stride` numbers apart.
template <bool Squared, std::size_t S, typename T>
INNER void gather_columns(const T *z, std::size_t stride, std::size_t i, const Graph::Ends &ends,
                          double *out) {
    double sum[S], own[S];
    for (std::size_t c = 0; c < S; ++c) {
        sum[c] = 0.0;
        own[c] = z[i * stride + c];
    }
    for (std::size_t j = 0; j < ends.count; ++j) {
        const double w = ends.weights[j];
        const T *its = z + ends.rows[j] * stride;
        for (std::size_t c = 0; c < S; ++c) {
            const double d = own[c] - static_cast<double>(its[c]);
            sum[c] += w * (Squared ? d * d : d);
        }
    }
    for (std::size_t c = 0; c < S; ++c) out[c] = sum[c];
}

// Adds scale * (z_ic - z_jc)^2 to out[c], for all ends j of the edges from row i and S columns c.
template <std::size_t S>
INNER void square_columns(const double *z, std::size_t stride, std::size_t i,
                          const std::int32_t *ends, std::size_t k, double scale, double *out) {
    double sum[S], own[S];
    for (std::size_t c = 0; c < S; ++c) {
        sum[c] = out[c];
        own[c] = z[i * stride + c];
    }
    for (std::size_t j = 0; j < k; ++j) {
        const double *its = z + ends[j] * stride;
        for (std::size_t c = 0; c < S; ++c) {
            const double d = own[c] - its[c];
            sum[c] += scale * (d * d);
        }
    }
    for (std::size_t c = 0; c < S; ++c) out[c] = sum[c];
}

// Calls run for groups of 8, 4, 2 or 1 columns. The number is a compile-time constant, so that the
// sums stay in registers.
template <typename Run>
INNER void in_eights(std::size_t columns, Run run) {
    std::size_t c = 0;
    for (; c + 8 <= columns; c += 8) run(c, std::integral_constant<std::size_t, 8>{});
    if (columns - c >= 4) {
        run(c, std::integral_constant<std::size_t, 4>{});
        c += 4;
    }
    if (columns - c >= 2) {
        run(c, std::integral_constant<std::size_t, 2>{});
        c += 2;
    }
    if (columns > c) run(c, std::integral_constant<std::size_t, 1>{});
}

MULTIVERSION
void laplacian_at(const double *z, std::size_t stride, std::size_t s, std::size_t i,
                  const Graph::Ends &ends, double *out) {
    in_eights(s, [&](std::size_t c, auto size) INLINE_LAMBDA {
        gather_columns<false, size>(z + c, stride, i, ends, out + c);
    });
}

MULTIVERSION
void laplacian_at(const float *z, std::size_t stride, std::size_t s, std::size_t i,
                  const Graph::Ends &ends, double *out) {
    in_eights(s, [&](std::size_t c, auto size) INLINE_LAMBDA {
        gather_columns<false, size>(z + c, stride, i, ends, out + c);
    });
}

MULTIVERSION
void shares_at(const double *z, std::size_t stride, std::size_t s, std::size_t i,
               const Graph::Ends &ends, double *out) {
    in_eights(s, [&](std::size_t c, auto size) INLINE_LAMBDA {
        gather_columns<true, size>(z + c, stride, i, ends, out + c);
    });
}

MULTIVERSION
void shares_at(const float *z, std::size_t stride, std::size_t s, std::size_t i,
               const Graph::Ends &ends, double *out) {
    in_eights(s, [&](std::size_t c, auto size) INLINE_LAMBDA {
        gather_columns<true, size>(z + c, stride, i, ends, out + c);
    });
}

MULTIVERSION
void add_squares(const double *z, std::size_t stride, std::size_t s, std::size_t i,
                 const std::int32_t *ends, std::size_t k, double scale, double *sum) {
    in_eights(s, [&](std::size_t c, auto size) INLINE_LAMBDA {
        square_columns<size>(z + c, stride, i, ends, k, scale, sum + c);
    });
}

// out[c] = the mean of (block[row, c] - block[end, c])^2 over the ends of k edges, for the columns of
// a block. The ends are rows at places; `at` has the row at each place, or is null if they agree.
template <std::size_t G>
INNER void block_mean(const float *block, std::size_t row, const std::int32_t *ends, std::size_t k,
                      const std::int32_t *at, Floats *out) {
    Floats own[G], its, sum[G] = {};
    for (std::size_t g = 0; g < G; ++g) load(block + row * G * FLOATS + g * FLOATS, own[g]);
    for (std::size_t j = 0; j < k; ++j) {
        const std::size_t end = at ? at[ends[j]] : ends[j];
        for (std::size_t g = 0; g < G; ++g) {
            load(block + end * G * FLOATS + g * FLOATS, its);
            const Floats d = own[g] - its;
            sum[g] += d * d;
        }
    }
    Floats scale;
    spread(1.0f / static_cast<float>(k), scale);
    for (std::size_t g = 0; g < G; ++g) out[g] = sum[g] * scale;
}

MULTIVERSION
void block_margin(const float *block, std::size_t row, const std::int32_t *other, std::size_t k_other,
                  const std::int32_t *same, std::size_t k_same, const std::int32_t *at, float *out) {
    constexpr std::size_t G = Graph::WIDTH / FLOATS;
    Floats far[G], near[G];
    block_mean<G>(block, row, other, k_other, at, far);
    block_mean<G>(block, row, same, k_same, at, near);
    for (std::size_t g = 0; g < G; ++g) store(far[g] - near[g], out + g * FLOATS);
}

// The sum of each column over `count` rows, and the sum of the squared deviations from its mean.
MULTIVERSION
void sums_of_rows(const double *rows, std::size_t count, std::size_t s, double *sums,
                  double *deviations) {
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < s; ++c) sums[c] += rows[i * s + c];
    std::vector<double> mean(s);
    for (std::size_t c = 0; c < s; ++c) mean[c] = sums[c] / static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < s; ++c) {
            const double d = rows[i * s + c] - mean[c];
            deviations[c] += d * d;
        }
}

double mean_distance(const double *z, std::size_t stride, std::size_t i, std::size_t r,
                     const std::int32_t *ends, std::size_t k) {
    double sum = 0.0;
    if (r == 1)
        for (std::size_t j = 0; j < k; ++j) sum += (z[i] - z[ends[j]]) * (z[i] - z[ends[j]]);
    else
        for (std::size_t j = 0; j < k; ++j) sum += squared_distance(z + i * stride, z + ends[j] * stride, r);
    return sum / static_cast<double>(k);
}

}  // namespace

Graph::Graph(std::size_t n, Neighbors same, Neighbors other, const Table &place)
    : n_(n), place_(n) {
    if (place.r > 0) order_ = order_of_near_rows(place);
    for (std::size_t i = 0; i < n; ++i) place_[row_at(i)] = static_cast<std::int32_t>(i);
    add_edges(other, 1.0);
    add_edges(same, -1.0);
}

void Graph::add_edges(Neighbors near, double sign) {
    Edges edges{sign, near.k, std::vector<std::int32_t>(n_ * near.k),
                std::vector<std::size_t>(n_ + 1, 0), std::vector<std::int32_t>(n_ * near.k)};
    for (std::size_t i = 0; i < n_; ++i)
        for (std::size_t j = 0; j < near.k; ++j)
            edges.out[i * near.k + j] = place_[near.rows[row_at(i) * near.k + j]];
    for (const std::int32_t end : edges.out) ++edges.start[end + 1];
    std::partial_sum(edges.start.begin(), edges.start.end(), edges.start.begin());
    std::vector<std::size_t> next(edges.start.begin(), edges.start.end() - 1);
    for (std::size_t i = 0; i < n_; ++i)
        for (std::size_t j = 0; j < near.k; ++j)
            edges.in[next[edges.out[i * near.k + j]]++] = static_cast<std::int32_t>(i);
    edges_.push_back(std::move(edges));
}

template <typename T>
Graph::Rows<T> Graph::arranged(const double *z, std::size_t s, std::size_t threads) const {
    // Only differences of rows are used. The first row is subtracted, because float32 is not
    // precise enough for small differences of large numbers.
    const bool narrow = sizeof(T) < sizeof(double);
    const std::vector<double> shift = narrow ? std::vector<double>(z, z + s) : std::vector<double>(s);
    constexpr std::size_t LINE = 64 / sizeof(T);  // numbers in a cache line
    std::size_t stride = 1;
    while (stride < std::min(s, LINE)) stride *= 2;
    if (s > LINE) stride = (s + LINE / 2 - 1) / (LINE / 2) * (LINE / 2);
    std::unique_ptr<T[]> kept(new T[n_ * stride + LINE]);
    void *start = kept.get();
    std::size_t space = (n_ * stride + LINE) * sizeof(T);
    auto *data = static_cast<T *>(std::align(64, n_ * stride * sizeof(T), start, space));
    for_rows(n_, threads, [&](Range rows) {
        for (std::size_t i = rows.from; i < rows.to; ++i)
            for (std::size_t c = 0; c < s; ++c)
                data[i * stride + c] = static_cast<T>(z[row_at(i) * s + c] - shift[c]);
    });
    return {data, stride, std::move(kept)};
}

Graph::Rows<double> Graph::in_order(const double *z, std::size_t s, std::size_t threads) const {
    return order_.empty() ? Rows<double>{z, s, nullptr} : arranged<double>(z, s, threads);
}

void Graph::margins(const double *z, std::size_t r, std::size_t threads, double *out) const {
    const auto placed = in_order(z, r, threads);
    for_rows(n_, threads, [&](Range rows) {
        for (std::size_t i = rows.from; i < rows.to; ++i) {
            double margin = 0.0;
            for (const Edges &edges : edges_) {
                const std::int32_t *ends = edges.out.data() + i * edges.k;
                margin += edges.sign * mean_distance(placed.data, placed.stride, i, r, ends, edges.k);
            }
            out[row_at(i)] = margin;
        }
    });
}

template <typename T>
void Graph::column_margins(const double *phi, std::size_t q, const std::int32_t *rows,
                           std::size_t count, std::size_t threads, T *out) const {
    const auto placed = in_order(phi, q, threads);
    for_rows(count, threads, [&](Range part) {
        std::vector<double> sum(q);
        for (std::size_t j = part.from; j < part.to; ++j) {
            const std::size_t i = place_[rows[j]];
            std::fill(sum.begin(), sum.end(), 0.0);
            for (const Edges &edges : edges_)
                add_squares(placed.data, placed.stride, q, i, edges.out.data() + i * edges.k,
                            edges.k, edges.sign / static_cast<double>(edges.k), sum.data());
            std::copy_n(sum.data(), q, out + j * q);
        }
    });
}

template void Graph::column_margins(const double *, std::size_t, const std::int32_t *, std::size_t,
                                    std::size_t, double *) const;
template void Graph::column_margins(const double *, std::size_t, const std::int32_t *, std::size_t,
                                    std::size_t, float *) const;

void Graph::margins_of_block(const float *block, const std::int32_t *rows, std::size_t count,
                             float *out) const {
    const Edges &other = edges_[0], &same = edges_[1];
    const std::int32_t *at = order_.empty() ? nullptr : order_.data();
    for (std::size_t j = 0; j < count; ++j) {
        const std::size_t place = place_[rows[j]];
        block_margin(block, rows[j], other.out.data() + place * other.k, other.k,
                     same.out.data() + place * same.k, same.k, at, out + j * WIDTH);
    }
}

void Graph::add_out(std::size_t i, const double *u, Ends &ends) const {
    for (const Edges &edges : edges_) {
        const double weight = edges.sign / static_cast<double>(edges.k) * u[i];
        ends.reserve(ends.count + edges.k + 1);
        for (std::size_t j = i * edges.k; j < (i + 1) * edges.k; ++j)
            ends.add(edges.out[j], weight);
    }
}

void Graph::add_in(std::size_t i, const double *u, Ends &ends) const {
    for (const Edges &edges : edges_) {
        const double scale = edges.sign / static_cast<double>(edges.k);
        const std::size_t from = edges.start[i], to = edges.start[i + 1];
        ends.reserve(ends.count + to - from + 1);
        for (std::size_t j = from; j < to; ++j) ends.add(edges.in[j], scale * u[edges.in[j]]);
    }
}

void Graph::add_both(std::size_t i, const double *u, Ends &ends) const {
    add_out(i, u, ends);
    add_in(i, u, ends);
}

double Graph::in_weight(std::size_t i, const double *u) const {
    double total = 0.0;
    for (const Edges &edges : edges_) {
        double sum = 0.0;
        for (std::size_t j = edges.start[i]; j < edges.start[i + 1]; ++j) sum += u[edges.in[j]];
        total += edges.sign / static_cast<double>(edges.k) * sum;
    }
    return total;
}

template <typename Over>
void Graph::over_pieces(const double *z, std::size_t s, const double *weight, std::size_t threads,
                        Over over) const {
    const auto weights = in_order(weight, 1, threads);
    const auto all = [&](const auto &placed) {
        for_rows(n_, threads, [&](Range rows) { over(placed, weights.data, rows); });
    };
    if (order_.empty()) all(in_order(z, s, threads));
    else all(arranged<float>(z, s, threads));
}

template <typename Collect, typename At>
void Graph::along_edges(Range rows, Collect collect, At at) const {
    Ends ends;
    for (std::size_t i = rows.from; i < rows.to; ++i) {
        ends.count = 0;
        collect(i, ends);
        at(i, ends);
    }
}

template <typename Collect, typename At>
void Graph::over_rows(const double *z, std::size_t s, const double *weight, std::size_t threads,
                      double *out, Collect collect, At at) const {
    over_pieces(z, s, weight, threads, [&](const auto &placed, const double *u, Range rows) {
        along_edges(
            rows, [&](std::size_t i, Ends &ends) { collect(i, u, ends); },
            [&](std::size_t i, const Ends &ends) {
                at(placed, i, u, ends, out + row_at(i) * s);
            });
    });
}

void Graph::laplacian(const double *z, std::size_t s, const double *weight, std::size_t threads,
                      double *out) const {
    over_rows(
        z, s, weight, threads, out,
        [&](std::size_t i, const double *u, Ends &ends) { add_both(i, u, ends); },
        [&](const auto &rows, std::size_t i, const double *, const Ends &ends, double *sum) {
            laplacian_at(rows.data, rows.stride, s, i, ends, sum);
        });
}

void Graph::share_sums(const double *z, std::size_t s, const double *weight, std::size_t threads,
                       double *out) const {
    // Sums are computed for each piece of rows, and the pieces are combined in their order.
    const std::size_t pieces = (n_ + ROWS - 1) / ROWS;
    std::vector<double> sums(pieces * s), deviations(pieces * s);
    over_pieces(z, s, weight, threads, [&](const auto &placed, const double *u, Range rows) {
        const std::size_t piece = rows.from / ROWS;
        std::vector<double> shares((rows.to - rows.from) * s);
        along_edges(
            rows, [&](std::size_t i, Ends &ends) { add_both(i, u, ends); },
            [&](std::size_t i, const Ends &ends) {
                shares_at(placed.data, placed.stride, s, i, ends, shares.data() + (i - rows.from) * s);
            });
        sums_of_rows(shares.data(), rows.to - rows.from, s, sums.data() + piece * s,
                     deviations.data() + piece * s);
    });
    for (std::size_t c = 0; c < s; ++c) {
        double count = 0.0, total = 0.0, deviation = 0.0;
        for (std::size_t piece = 0; piece < pieces; ++piece) {
            const double more = std::min(ROWS, n_ - piece * ROWS), sum = sums[piece * s + c];
            if (count > 0.0) {
                const double gap = sum / more - total / count;
                deviation += gap * gap * count * more / (count + more);
            }
            deviation += deviations[piece * s + c];
            total += sum;
            count += more;
        }
        out[2 * c] = total;
        out[2 * c + 1] = deviation;
    }
}

void Graph::half_laplacian(const double *z, std::size_t s, const double *weight,
                           std::size_t threads, double *out) const {
    over_rows(
        z, s, weight, threads, out,
        [&](std::size_t i, const double *u, Ends &ends) {
            if (u[i] != 0.0) add_out(i, u, ends);
        },
        [&](const auto &rows, std::size_t i, const double *u, const Ends &ends, double *sum) {
            laplacian_at(rows.data, rows.stride, s, i, ends, sum);
            const double half = in_weight(i, u) / 2, *own = z + row_at(i) * s;
            for (std::size_t c = 0; c < s; ++c) sum[c] += half * own[c];
        });
}

}  // namespace metricboost
