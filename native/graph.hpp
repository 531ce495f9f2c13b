// The signed neighbour graph: edges of weight +u_i/k to the rows of the other class nearest to row
// i, and of -u_i/k to those of its own.
//
// Rows are read along edges, so a graph of many rows keeps them in an order in which near rows lie
// near each other in memory. Every edge is kept at both of its ends: a row's sum is then over its
// own edges and nothing else writes to it. Sums have a fixed order, whatever the threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "blocks.hpp"

namespace metricboost {

struct Neighbors {
    const std::int32_t *rows;  // n x k
    std::size_t k;
};

class Graph {
  public:
    // `place` says where the rows lie, so that near ones can be put together; it may have no
    // columns, and rows then stay in their order.
    Graph(std::size_t n, Neighbors same, Neighbors other, const Table &place);

    std::size_t size() const { return n_; }

    // out[i] = mean over other of |z_i - z_j|^2 minus the mean over same; z is n x r.
    void margins(const double *z, std::size_t r, std::size_t threads, double *out) const;

    // out[j, c] = the same for the row rows[j] and every column by itself: the diagonal of its D_i.
    // phi is n x q, out is count x q.
    template <typename T>
    void column_margins(const double *phi, std::size_t q, const std::int32_t *rows,
                        std::size_t count, std::size_t threads, T *out) const;

    // out = L z for the signed Laplacian L. Rows with weight 0 are outside the bag: only edges
    // from rows inside count. z and out are n x s. Here and below, where near rows are put
    // together, z is read in float32: a step takes as long as memory needs to give the ends of the
    // edges.
    void laplacian(const double *z, std::size_t s, const double *weight, std::size_t threads,
                   double *out) const;

    // A y with Phi'LPhi = Phi'y + y'Phi for z = Phi, from the edges of the rows inside alone: half
    // the reading. The columns of z should have means near zero.
    void half_laplacian(const double *z, std::size_t s, const double *weight, std::size_t threads,
                        double *out) const;

    // A row's share in z_c' L z_c is what the edges at it, from either end, add: the shares of
    // independent rows in a sum over edges that are not independent. out[c] = the sum of the
    // shares, and of their squared deviations from their mean, for every column of z (n x s).
    void share_sums(const double *z, std::size_t s, const double *weight, std::size_t threads,
                    double *out) const;

    struct Range {
        std::size_t from, to;
    };

    // The edges at a row that have a weight, from either end.
    struct Ends {
        std::vector<std::int32_t> rows;
        std::vector<double> weights;
        std::size_t count = 0;

        void reserve(std::size_t size) {
            if (rows.size() < size) {
                rows.resize(size);
                weights.resize(size);
            }
        }

        // Overwritten by the next where it has no weight: half of them have none, in no order.
        void add(std::int32_t row, double weight) {
            rows[count] = row;
            weights[count] = weight;
            count += weight != 0.0;
        }
    };

  private:
    // One class's edges, in the order of the graph's rows.
    struct Edges {
        double sign;
        std::size_t k;
        std::vector<std::int32_t> out;   // n x k: where a row's edges end
        std::vector<std::size_t> start;  // n + 1: a row's part of `in`
        std::vector<std::int32_t> in;    // the rows whose edges end here
    };
    // Rows in the order of the graph, as they were given or in memory of their own.
    template <typename T>
    struct Rows {
        const T *data;
        std::size_t stride;
        std::unique_ptr<T[]> kept;
    };

    std::size_t n_;
    std::vector<std::int32_t> order_;  // the row at each place; empty where rows stay in their order
    std::vector<std::int32_t> place_;  // the place of each row
    std::vector<Edges> edges_;         // to other, then to same

    void add_edges(Neighbors near, double sign);
    std::size_t row_at(std::size_t place) const { return order_.empty() ? place : order_[place]; }
    Rows<double> in_order(const double *z, std::size_t s, std::size_t threads) const;
    template <typename T>
    Rows<T> arranged(const double *z, std::size_t s, std::size_t threads) const;

    void add_out(std::size_t i, const double *u, Ends &ends) const;
    void add_in(std::size_t i, const double *u, Ends &ends) const;
    void add_both(std::size_t i, const double *u, Ends &ends) const;
    double in_weight(std::size_t i, const double *u) const;

    // Calls over(rows, weights, range) for pieces of the rows, which threads share.
    template <typename Over>
    void over_pieces(const double *z, std::size_t s, const double *weight, std::size_t threads,
                     Over over) const;

    // Calls at(i, ends) for every row, with the ends that collect(i, ends) has added.
    template <typename Collect, typename At>
    void along_edges(Range rows, Collect collect, At at) const;

    // The same for all rows: collect(i, weights, ends), at(rows, i, weights, ends, sum).
    template <typename Collect, typename At>
    void over_rows(const double *z, std::size_t s, const double *weight, std::size_t threads,
                   double *out, Collect collect, At at) const;
};

}  // namespace metricboost
