// Passes over all candidate terms. The passes only choose among the candidates, so the standardised
// values of the terms and their column margins are kept in float32.
//
// The values are kept in blocks of WIDTH terms, row by row (n x WIDTH). The sums of a pass over a
// block stay in registers. Terms beyond the room for kept values are computed again in every pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace metricboost {

class Sweeps {
  public:
    // x is the transposed table (p x n), which is owned by the caller. Column margins are computed
    // for the `count` rows in `rows`. At most `room` terms are kept.
    Sweeps(const double *x, std::size_t p, std::size_t n, const std::int32_t *rows,
           std::size_t count, std::size_t degree, std::size_t room);

    std::size_t n() const { return n_; }
    std::size_t p() const { return p_; }
    std::size_t degree() const { return degree_; }
    std::size_t size() const { return size_; }

    // Appends terms: rows of `degree` column numbers, padded with p, and means and deviations.
    void append(const std::int32_t *factors, const double *moments, std::size_t q,
                std::size_t threads);

    // Forgets the column margins, which belong to one graph.
    void forget_margins();

    // out[t] = sum_j weight[rows[j]] * (the margin of row rows[j] in term t alone).
    void diagonal(const Graph &graph, const double *weight, std::size_t threads, double *out);

    // out[c, t] = sum_i y[i, c] * (the value of term t in row i), s x size. y is n x s.
    void pull_back(const double *y, std::size_t s, std::size_t threads, double *out);

  private:
    const double *x_;
    std::size_t p_, n_, degree_, room_, size_ = 0;
    double scale_;  // the values are scaled, so that their squares neither overflow nor underflow
    std::vector<std::int32_t> rows_, factors_;
    std::vector<double> moments_;
    std::vector<std::vector<float>> values_, margins_;  // one block after the other
    std::size_t n_margins_ = 0;                         // terms with column margins in margins_

    std::size_t blocks() const;
    std::size_t width_of(std::size_t block) const;
    void fill(std::size_t block, std::size_t first, float *values) const;
    const float *values_of(std::size_t block, std::vector<float> &spare) const;
    const float *margins_of(std::size_t block, const Graph &graph, std::vector<float> &values,
                            std::vector<float> &margins) const;
};

}  // namespace metricboost
