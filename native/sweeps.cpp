#include "sweeps.hpp"

#include <algorithm>
#include <cmath>

#include "lanes.hpp"
#include "multiversion.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

constexpr std::size_t WIDTH = Graph::WIDTH;
constexpr std::size_t GROUPS = WIDTH / FLOATS;  // registers for the columns of a block
constexpr std::size_t TOGETHER = 5;             // columns of y that are processed at once
constexpr std::size_t RUN = 64;                 // rows whose values are computed at a time
// Scaled values are at most about LARGEST, and small values are scaled up by at most MOST_UP.
constexpr double LARGEST = 1e12, MOST_UP = 1e12;

// The power of two by which the values are multiplied. Most tables are standardised and have 1.
double scale_of(const double *x, std::size_t size) {
    double largest = 0.0;
    for (std::size_t i = 0; i < size; ++i) largest = std::max(largest, std::abs(x[i]));
    if (largest > LARGEST) return std::exp2(-std::ceil(std::log2(largest / LARGEST)));
    if (largest > 1 / MOST_UP) return 1.0;
    return MOST_UP;
}

// The values of a term in `rows` rows from row `from` on, WIDTH numbers apart in `out`.
MULTIVERSION
void values_of_term(const double *x, std::size_t n, std::size_t p, const std::int32_t *factors,
                    std::size_t degree, double mean, double factor, std::size_t from,
                    std::size_t rows, float *out) {
    double run[RUN];
    const double *first = x + factors[0] * n + from;
    for (std::size_t i = 0; i < rows; ++i) run[i] = first[i];
    for (std::size_t d = 1; d < degree && factors[d] < static_cast<std::int32_t>(p); ++d) {
        const double *column = x + factors[d] * n + from;
        for (std::size_t i = 0; i < rows; ++i) run[i] *= column[i];
    }
    for (std::size_t i = 0; i < rows; ++i)
        out[i * WIDTH] = static_cast<float>((run[i] - mean) * factor);
}

// Rows with weights that are not zero.
struct Weighted {
    std::vector<std::int32_t> rows;
    std::vector<float> weights;
};

// sums[c] = sum_j weights[j] * margins[rows[j], c].
MULTIVERSION
void weighted_sums(const float *margins, const Weighted &weighted, float *sums) {
    Floats sum[GROUPS] = {}, margin, weight;
    for (std::size_t j = 0; j < weighted.rows.size(); ++j) {
        spread(weighted.weights[j], weight);
        for (std::size_t g = 0; g < GROUPS; ++g) {
            load(margins + weighted.rows[j] * WIDTH + g * FLOATS, margin);
            sum[g] += margin * weight;
        }
    }
    for (std::size_t g = 0; g < GROUPS; ++g) store(sum[g], sums + g * FLOATS);
}

// sums[s, c] = sum_i y[i, s] * values[i, c], for S columns of y that are TOGETHER numbers apart.
template <std::size_t S>
INNER void add_products(const float *values, const float *y, std::size_t n, float *sums) {
    Floats sum[S * GROUPS] = {}, value[GROUPS], own;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t g = 0; g < GROUPS; ++g) load(values + i * WIDTH + g * FLOATS, value[g]);
        for (std::size_t s = 0; s < S; ++s) {
            spread(y[i * TOGETHER + s], own);
            for (std::size_t g = 0; g < GROUPS; ++g) sum[s * GROUPS + g] += value[g] * own;
        }
    }
    for (std::size_t j = 0; j < S * GROUPS; ++j) store(sum[j], sums + j * FLOATS);
}

MULTIVERSION
void products(const float *values, const float *y, std::size_t s, std::size_t n, float *sums) {
    switch (s) {
        case 1: return add_products<1>(values, y, n, sums);
        case 2: return add_products<2>(values, y, n, sums);
        case 3: return add_products<3>(values, y, n, sums);
        case 4: return add_products<4>(values, y, n, sums);
        default: return add_products<5>(values, y, n, sums);
    }
}

double largest_of(const double *values, std::size_t size) {
    double largest = 0.0;
    for (std::size_t i = 0; i < size; ++i) largest = std::max(largest, std::abs(values[i]));
    return largest > 0.0 ? largest : 1.0;
}

}  // namespace

Sweeps::Sweeps(const double *x, std::size_t p, std::size_t n, const std::int32_t *rows,
               std::size_t count, std::size_t degree, std::size_t room)
    : x_(x), p_(p), n_(n), degree_(degree), room_(room / WIDTH * WIDTH),
      scale_(scale_of(x, p * n)), rows_(rows, rows + count) {}

std::size_t Sweeps::blocks() const { return (size_ + WIDTH - 1) / WIDTH; }

std::size_t Sweeps::width_of(std::size_t block) const {
    return std::min(WIDTH, size_ - block * WIDTH);
}

// Computes the values of the terms of a block from the term `first` of the block on.
void Sweeps::fill(std::size_t block, std::size_t first, float *values) const {
    for (std::size_t from = 0; from < n_; from += RUN)
        for (std::size_t c = first; c < width_of(block); ++c) {
            const std::size_t t = block * WIDTH + c;
            values_of_term(x_, n_, p_, factors_.data() + t * degree_, degree_, moments_[2 * t],
                           scale_ / moments_[2 * t + 1], from, std::min(RUN, n_ - from),
                           values + from * WIDTH + c);
        }
}

void Sweeps::append(const std::int32_t *factors, const double *moments, std::size_t q,
                    std::size_t threads) {
    const std::size_t before = size_;
    factors_.insert(factors_.end(), factors, factors + q * degree_);
    moments_.insert(moments_.end(), moments, moments + 2 * q);
    size_ += q;
    const std::size_t kept = std::min(blocks(), room_ / WIDTH), first = before / WIDTH;
    values_.resize(kept);
    for_each_piece(kept > first ? kept - first : 0, threads, [&](std::size_t piece, std::size_t) {
        const std::size_t block = first + piece;
        values_[block].resize(n_ * WIDTH);
        fill(block, block == first ? before % WIDTH : 0, values_[block].data());
    });
}

void Sweeps::forget_margins() {
    margins_.clear();
    n_margins_ = 0;
}

const float *Sweeps::values_of(std::size_t block, std::vector<float> &spare) const {
    if (block < values_.size()) return values_[block].data();
    spare.assign(n_ * WIDTH, 0.0f);
    fill(block, 0, spare.data());
    return spare.data();
}

const float *Sweeps::margins_of(std::size_t block, const Graph &graph, std::vector<float> &values,
                                std::vector<float> &margins) const {
    margins.resize(rows_.size() * WIDTH);
    graph.margins_of_block(values_of(block, values), rows_.data(), rows_.size(), margins.data());
    return margins.data();
}

void Sweeps::diagonal(const Graph &graph, const double *weight, std::size_t threads, double *out) {
    const std::size_t kept = values_.size();
    margins_.resize(kept);
    const std::size_t known = n_margins_ / WIDTH;  // complete blocks with column margins
    const double largest = largest_of(weight, n_);
    Weighted weighted;
    for (std::size_t j = 0; j < rows_.size(); ++j)
        if (weight[rows_[j]] != 0.0) {
            weighted.rows.push_back(static_cast<std::int32_t>(j));
            weighted.weights.push_back(static_cast<float>(weight[rows_[j]] / largest));
        }
    std::vector<std::vector<float>> values(threads), spare(threads);
    for_each_piece(blocks(), threads, [&](std::size_t block, std::size_t worker) {
        const float *margins = nullptr;
        if (block < known || (block < kept && n_margins_ == size_)) {
            margins = margins_[block].data();
        } else {
            auto &own = block < kept ? margins_[block] : spare[worker];
            margins = margins_of(block, graph, values[worker], own);
        }
        float sums[WIDTH];
        weighted_sums(margins, weighted, sums);
        for (std::size_t c = 0; c < width_of(block); ++c)
            out[block * WIDTH + c] = static_cast<double>(sums[c]) * largest / scale_ / scale_;
    });
    n_margins_ = std::min(size_, kept * WIDTH);
}

void Sweeps::pull_back(const double *y, std::size_t s, std::size_t threads, double *out) {
    const double largest = largest_of(y, n_ * s);
    std::vector<float> some(n_ * TOGETHER);
    std::vector<std::vector<float>> spare(threads);
    for (std::size_t first = 0; first < s; first += TOGETHER) {
        const std::size_t count = std::min(TOGETHER, s - first);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = 0; c < count; ++c)
                some[i * TOGETHER + c] = static_cast<float>(y[i * s + first + c] / largest);
        for_each_piece(blocks(), threads, [&](std::size_t block, std::size_t worker) {
            float sums[TOGETHER * WIDTH];
            products(values_of(block, spare[worker]), some.data(), count, n_, sums);
            for (std::size_t c = 0; c < count; ++c)
                for (std::size_t t = 0; t < width_of(block); ++t)
                    out[(first + c) * size_ + block * WIDTH + t] =
                        static_cast<double>(sums[c * WIDTH + t]) * largest / scale_;
        });
    }
}

}  // namespace metricboost
