// The signed neighbour graph. Row i has edges of weight +u_i/k to its k nearest rows of the other
// class, and edges of weight -u_i/k to its k nearest rows of its own class.
//
// Rows are read along edges, so a graph of many rows stores rows that are near each other close
// together in memory. Every edge is stored at both of its ends. The sum of a row is then over its
// own edges, and no other row writes to it. Sums have a fixed order, which does not depend on the
// number of threads.
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
    // `place` has the positions of the rows, which determine their order in memory. If it has no
    // columns, the rows keep their order.
    Graph(std::size_t n, Neighbors same, Neighbors other, const Table &place);

    // Number of columns of a block of float32 numbers, see margins_of_block.
    static constexpr std::size_t WIDTH = 64;

    std::size_t size() const { return n_; }

    // out[i] = mean of |z_i - z_j|^2 over the rows j in other, minus the mean over the rows j in
    // same. z is n x r.
    void margins(const double *z, std::size_t r, std::size_t threads, double *out) const;

    // out[j, c] = the margin of row i = rows[j] in column c of phi alone: the diagonal of D_i.
    // phi is n x q, out is count x q.
    template <typename T>
    void column_margins(const double *phi, std::size_t q, const std::int32_t *rows,
                        std::size_t count, std::size_t threads, T *out) const;

    // The same for a block of WIDTH columns in float32, for one thread. block is n x WIDTH, out is
    // count x WIDTH.
    void margins_of_block(const float *block, const std::int32_t *rows, std::size_t count,
                          float *out) const;

    // out = L z for the signed Laplacian L. Edges from rows with weight 0 (out-of-bag rows) are
    // left out. z and out are n x s. If the rows are reordered, z is read in float32 here and in
    // the functions below: their time is the time to read the rows along the edges from memory.
    void laplacian(const double *z, std::size_t s, const double *weight, std::size_t threads,
                   double *out) const;

    // out = y with Phi'LPhi = Phi'y + y'Phi for z = Phi. It is computed from the edges of the rows
    // with nonzero weight only, which halves the memory accesses. The columns of z should have
    // means near zero, because rounding errors grow with the means.
    void half_laplacian(const double *z, std::size_t s, const double *weight, std::size_t threads,
                        double *out) const;

    // The share of a row in z_c' L z_c is the sum over all edges from or to the row. Rows are
    // independent, but edges are not. out[c] = the sum of the shares, and the sum of their squared
    // deviations from their mean, for every column c of z (n x s).
    void share_sums(const double *z, std::size_t s, const double *weight, std::size_t threads,
                    double *out) const;

    struct Range {
        std::size_t from, to;
    };

    // The other ends of the edges from or to a row, with nonzero weights.
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

        // An edge with weight 0 is overwritten by the next edge. This avoids a branch that would
        // often be mispredicted, because about half of the weights are 0, in random order.
        void add(std::int32_t row, double weight) {
            rows[count] = row;
            weights[count] = weight;
            count += weight != 0.0;
        }
    };

  private:
    // The edges to `other` or to `same`, in the order of the rows in the graph.
    struct Edges {
        double sign;
        std::size_t k;
        std::vector<std::int32_t> out;   // n x k: the ends of the edges from each row
        std::vector<std::size_t> start;  // n + 1: the part of `in` of each row
        std::vector<std::int32_t> in;    // the starts of the edges to each row
    };
    // Rows in the order of the graph: the given array, or a copy that is owned (`kept`).
    template <typename T>
    struct Rows {
        const T *data;
        std::size_t stride;
        std::unique_ptr<T[]> kept;
    };

    std::size_t n_;
    std::vector<std::int32_t> order_;  // the row at each place; empty if the rows keep their order
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

    // Calls over(rows, weights, range) for pieces of the rows, in several threads.
    template <typename Over>
    void over_pieces(const double *z, std::size_t s, const double *weight, std::size_t threads,
                     Over over) const;

    // Calls collect(i, ends) for every row, which adds edges to ends, and then at(i, ends).
    template <typename Collect, typename At>
    void along_edges(Range rows, Collect collect, At at) const;

    // As along_edges for all rows, with collect(i, weights, ends) and at(rows, i, weights, ends,
    // sum).
    template <typename Collect, typename At>
    void over_rows(const double *z, std::size_t s, const double *weight, std::size_t threads,
                   double *out, Collect collect, At at) const;
};

}  // namespace metricboost
