#include "nearest.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <tuple>
#include <vector>

#include "distance.hpp"
#include "multiversion.hpp"
#include "rounding.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

// Number of products whose flags (one byte each) are tested together.
constexpr std::size_t RUN = 8;
constexpr double NONE = std::numeric_limits<double>::infinity();

// The k nearest rows found so far, ordered by their distances rounded to twelve digits, and then by
// their numbers. The memory is owned by the caller.
struct NearestList {
    std::int32_t *rows;
    double *distances;
    std::size_t k;

    double bound() const { return distances[k - 1]; }

    bool has(std::int32_t row) const {
        bool found = false;
        for (std::size_t i = 0; i < k; ++i) found |= rows[i] == row;
        return found;
    }

    // Inserts a row that is not in the list. Returns whether the row was near enough.
    bool insert(double distance, std::int32_t row) {
        std::size_t place = k;
        while (place > 0 && before(distance, row, place - 1)) --place;
        if (place == k) return false;
        for (std::size_t i = k - 1; i > place; --i) {
            rows[i] = rows[i - 1];
            distances[i] = distances[i - 1];
        }
        rows[place] = row;
        distances[place] = distance;
        return true;
    }

  private:
    bool before(double distance, std::int32_t row, std::size_t i) const {
        if (rows[i] < 0) return true;  // an empty place is last, even if the distance is infinite
        return distance < distances[i] || (distance == distances[i] && row < rows[i]);
    }
};

// The rows in the order of their blocks. The blocks and their bounding boxes are made from the
// guide.
struct Partition {
    std::size_t n, r, d;
    std::vector<std::int32_t> order, place;  // the row at each place, and the place of each row
    std::vector<Block> blocks;
    std::vector<double> z;          // n x r: the rows at their places
    std::vector<double> low, high;  // blocks x d: the corners of the boxes
    double rounding;                // of a coordinate of the guide

    Partition(const Table &table, const Guide &guide, const std::int32_t *classes,
              std::size_t n_classes)
        : n(table.n), r(table.r), d(guide.table.r), order(n), place(n), z(n * r),
          rounding(guide.rounding) {
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::int32_t a, std::int32_t b) { return classes[a] < classes[b]; });
        std::size_t from = 0;
        for (std::size_t c = 0; c < n_classes; ++c) {
            std::size_t end = from;
            while (end < n && classes[order[end]] == static_cast<std::int32_t>(c)) ++end;
            if (end > from)
                divide(guide.table, order.data(), from, end - from, static_cast<std::int32_t>(c),
                       blocks);
            from = end;
        }
        for (std::size_t i = 0; i < n; ++i) place[order[i]] = static_cast<std::int32_t>(i);
        copy_in_order(table, order, z.data());
        if (guide.table.data == table.data)  // the guide is the table, which z has in order
            find_boxes([&](std::size_t i, std::size_t c) { return z[i * r + c]; });
        else
            find_boxes([&](std::size_t i, std::size_t c) { return guide.table.at(order[i], c); });
    }

    const double *row(std::size_t place) const { return z.data() + place * r; }

    // A lower bound on the squared distances of the rows of two blocks.
    double gap(std::size_t a, std::size_t b) const {
        double sum = 0.0;
        for (std::size_t c = 0; c < d; ++c) {
            const double apart = std::max(low[a * d + c] - high[b * d + c],
                                          low[b * d + c] - high[a * d + c]);
            const double surely = std::max(apart - 2 * rounding, 0.0);
            sum += surely * surely;
        }
        return sum * (1 - 1e-12);
    }

  private:
    template <typename Value>
    void find_boxes(Value value) {
        low.assign(blocks.size() * d, NONE);
        high.assign(blocks.size() * d, -NONE);
        for (std::size_t b = 0; b < blocks.size(); ++b)
            for (std::size_t i = blocks[b].from; i < blocks[b].from + blocks[b].size; ++i)
                for (std::size_t c = 0; c < d; ++c) {
                    low[b * d + c] = std::min(low[b * d + c], value(i, c));
                    high[b * d + c] = std::max(high[b * d + c], value(i, c));
                }
    }
};

// Flags the products that are at or below the bar of their row or of their column. An approximate
// distance is the product plus both norms. The norm of the own row is already subtracted from a
// bar.
template <typename T>
INNER void flag(const T *products, const T *norms, const T *bars, T norm, T bar, std::size_t size,
                std::uint8_t *__restrict flags) {
    for (std::size_t j = 0; j < size; ++j) {
        const T for_row = bar - norms[j], for_column = bars[j] - norm;
        flags[j] = products[j] <= (for_row > for_column ? for_row : for_column);
    }
}

MULTIVERSION
void flag_below(const float *products, const float *norms, const float *bars, float norm,
                float bar, std::size_t size, std::uint8_t *flags) {
    flag(products, norms, bars, norm, bar, size, flags);
}

MULTIVERSION
void flag_below(const double *products, const double *norms, const double *bars, double norm,
                double bar, std::size_t size, std::uint8_t *flags) {
    flag(products, norms, bars, norm, bar, size, flags);
}

template <typename T>
T rounded_up(double value) {
    return static_cast<T>(value * (1 + 2 * static_cast<double>(std::numeric_limits<T>::epsilon())));
}

template <typename T>
struct Pair {
    std::uint16_t own, other;  // places of the two rows in their blocks
    T rough;
};

// The buffers of one thread.
template <typename T>
struct Desk {
    std::vector<T> tile, bars_a, bars_b, column;
    std::vector<Pair<T>> pairs_a, pairs_b;
    std::vector<std::pair<double, std::size_t>> near;

    Desk() : tile(BLOCK * BLOCK), bars_a(BLOCK), bars_b(BLOCK), column(BLOCK) {}
};

template <typename T>
class Search {
  public:
    Search(const Table &table, const Guide &guide, const std::int32_t *classes, const Lists &lists,
           const Blas &blas, std::int32_t *rows, double *distances)
        : n_(table.n), r_(table.r), classes_(classes), lists_(lists), blas_(blas), rows_(rows), distances_(distances),
          offset_(lists.count + 1, 0), parts_(table, guide, classes, lists.classes),
          locks_(parts_.blocks.size()), reach_(parts_.blocks.size() * lists.count),
          bounds_(n_ * lists.count) {
        for (std::size_t l = 0; l < lists.count; ++l) offset_[l + 1] = offset_[l] + lists.sizes[l];
        std::fill(rows_, rows_ + n_ * offset_.back(), -1);
        std::fill(distances_, distances_ + n_ * offset_.back(), NONE);
        for (auto &reach : reach_) reach = NONE;
        for (auto &bound : bounds_) bound = NONE;
        pack();
    }

    void run(const std::int32_t *previous, std::size_t threads) {
        const std::size_t count = parts_.blocks.size();
        std::vector<Desk<T>> desks(std::max<std::size_t>(std::min(threads, count), 1));
        for_each_piece(count, threads, [&](std::size_t a, std::size_t worker) {
            if (previous) take_over(a, previous);
            begin(a, desks[worker]);
        });
        for_each_piece(count, threads,
                       [&](std::size_t a, std::size_t worker) { compare(a, desks[worker]); });
        for_each_piece(count, threads, [&](std::size_t a, std::size_t) { measure(a); });
    }

  private:
    static constexpr T OPEN = std::numeric_limits<T>::infinity();

    std::size_t n_, r_;
    const std::int32_t *classes_;
    const Lists &lists_;
    const Blas &blas_;
    std::int32_t *rows_;
    double *distances_;
    std::vector<std::size_t> offset_;
    Partition parts_;
    std::vector<std::mutex> locks_;
    std::vector<std::atomic<double>> reach_;  // blocks x lists: largest k-th distance
    std::vector<std::atomic<double>> bounds_;  // lists x rows: the k-th distance of each row
    std::vector<T> packed_, norms_;           // centred and scaled rows in the order of the blocks
    std::vector<double> longest_;             // the root of the largest norm of each block
    double scale_ = 1.0;                      // the scale of the packed rows

    // Centres and scales the rows, so that squares and their sums do not overflow or underflow in
    // T.
    void pack() {
        std::vector<double> mean(r_, 0.0);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = 0; c < r_; ++c) mean[c] += parts_.row(i)[c] / static_cast<double>(n_);
        double largest = 0.0;
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t c = 0; c < r_; ++c)
                largest = std::max(largest, std::abs(parts_.row(i)[c] - mean[c]));
        const double scale = scale_ = 1.0 / std::max(largest, SMALLEST);
        packed_.resize(n_ * r_);
        norms_.resize(n_);
        longest_.assign(parts_.blocks.size(), 0.0);
        for (std::size_t b = 0; b < parts_.blocks.size(); ++b)
            for (std::size_t i = parts_.blocks[b].from, end = i + parts_.blocks[b].size; i < end; ++i) {
                double norm = 0.0;
                for (std::size_t c = 0; c < r_; ++c) {
                    const T value = static_cast<T>((parts_.row(i)[c] - mean[c]) * scale);
                    packed_[i * r_ + c] = value;
                    norm += static_cast<double>(value) * static_cast<double>(value);
                }
                norms_[i] = static_cast<T>(norm);
                longest_[b] = std::max(longest_[b], std::sqrt(norm));
            }
    }

    // The largest error of an approximate distance between rows of two blocks, including the
    // difference of two distances that are equal to twelve digits.
    double rounding(std::size_t a, std::size_t b) const {
        return rounding_of_products<T>(longest_[a] + longest_[b], r_, scale_);
    }

    std::int32_t slot(std::size_t a, std::size_t b) const {
        return lists_.slots[parts_.blocks[a].label * lists_.classes + parts_.blocks[b].label];
    }

    NearestList list(std::size_t place, std::int32_t slot) const {
        const std::size_t start = parts_.order[place] * offset_.back() + offset_[slot];
        return {rows_ + start, distances_ + start, static_cast<std::size_t>(lists_.sizes[slot])};
    }

    double reach(std::size_t block, std::int32_t slot) const {
        return slot < 0 ? -1.0 : reach_[block * lists_.count + slot].load(std::memory_order_relaxed);
    }

    double distance(std::size_t a, std::size_t b) const {
        return squared_distance(parts_.row(a), parts_.row(b), r_);
    }

    std::atomic<double> &bound(std::size_t place, std::int32_t slot) {
        return bounds_[slot * n_ + place];
    }

    void insert(std::size_t place, std::int32_t slot, std::size_t other) {
        auto own = list(place, slot);
        const std::int32_t row = parts_.order[other];
        if (own.has(row)) return;  // tested first, because most rows are in the list already
        if (own.insert(to_twelve_digits(distance(place, other)), row))
            bound(place, slot).store(own.bound(), std::memory_order_relaxed);
    }

    void update_reach(std::size_t block, std::int32_t slot) {
        const Block &rows = parts_.blocks[block];
        double farthest = 0.0;
        for (std::size_t place = rows.from; place < rows.from + rows.size; ++place)
            farthest = std::max(farthest, bound(place, slot).load(std::memory_order_relaxed));
        reach_[block * lists_.count + slot].store(farthest * (1 + TIE) + COARSE, std::memory_order_relaxed);
    }

    // Whether a row belongs into a list. The rows in `previous` are not trusted.
    bool belongs(std::size_t place, std::int32_t slot, std::int32_t row) const {
        if (row < 0 || static_cast<std::size_t>(row) >= n_ || row == parts_.order[place])
            return false;
        const std::size_t own = classes_[parts_.order[place]];
        return lists_.slots[own * lists_.classes + classes_[row]] == slot;
    }

    void take_over(std::size_t a, const std::int32_t *previous) {
        const Block &rows = parts_.blocks[a];
        std::vector<std::pair<double, std::int32_t>> near;
        for (std::size_t l = 0; l < lists_.count; ++l) {
            const auto slot = static_cast<std::int32_t>(l);
            for (std::size_t place = rows.from; place < rows.from + rows.size; ++place) {
                const std::int32_t *known = previous + parts_.order[place] * offset_.back();
                near.clear();
                for (std::size_t j = offset_[l]; j < offset_[l + 1]; ++j)
                    if (belongs(place, slot, known[j]))
                        near.emplace_back(to_twelve_digits(distance(place, parts_.place[known[j]])),
                                          known[j]);
                std::sort(near.begin(), near.end());
                near.erase(std::unique(near.begin(), near.end()), near.end());
                auto own = list(place, slot);
                for (std::size_t j = 0; j < near.size(); ++j)
                    std::tie(own.distances[j], own.rows[j]) = near[j];
                bound(place, slot).store(own.bound(), std::memory_order_relaxed);
            }
            update_reach(a, slot);
        }
    }

    // Sets the distances of the neighbours to their exact values, which were rounded for the order.
    void measure(std::size_t a) const {
        const Block &block = parts_.blocks[a];
        const std::size_t width = offset_.back();
        for (std::size_t place = block.from; place < block.from + block.size; ++place)
            for (std::size_t j = parts_.order[place] * width, end = j + width; j < end; ++j)
                if (rows_[j] >= 0) distances_[j] = distance(place, parts_.place[rows_[j]]);
    }

    // First bounds: fills every list from the nearest block with rows for the list.
    void begin(std::size_t a, Desk<T> &desk) {
        for (std::size_t l = 0; l < lists_.count; ++l) {
            std::size_t nearest_block = parts_.blocks.size();
            double best = NONE;
            for (std::size_t b = 0; b < parts_.blocks.size(); ++b) {
                if (slot(a, b) != static_cast<std::int32_t>(l)) continue;
                const double gap = a == b ? -1.0 : parts_.gap(a, b);
                if (gap < best) {
                    best = gap;
                    nearest_block = b;
                }
            }
            if (nearest_block < parts_.blocks.size())
                tile(a, nearest_block, static_cast<std::int32_t>(l), -1, desk);
        }
    }

    // The tiles of block a with itself and with all later blocks, in the order of their distance.
    void compare(std::size_t a, Desk<T> &desk) {
        desk.near.clear();
        for (std::size_t b = a; b < parts_.blocks.size(); ++b)
            if (slot(a, b) >= 0 || slot(b, a) >= 0) desk.near.emplace_back(parts_.gap(a, b), b);
        std::sort(desk.near.begin(), desk.near.end());
        for (const auto &[gap, b] : desk.near) {
            const std::int32_t own = slot(a, b), other = a == b ? -1 : slot(b, a);
            const bool reached = gap <= reach(a, own), reached_back = gap <= reach(b, other);
            if (reached || reached_back) tile(a, b, reached ? own : -1, reached_back ? other : -1, desk);
        }
    }

    // The bars of the rows of a block, minus their norms. Approximate distances above the bar of a
    // row are too large for its list.
    void bars(std::size_t block, std::int32_t slot, double slack, std::vector<T> &out) {
        const Block &rows = parts_.blocks[block];
        if (slot < 0) {
            std::fill(out.begin(), out.begin() + rows.size, -OPEN);
            return;
        }
        for (std::size_t i = 0; i < rows.size; ++i) {
            const std::size_t place = rows.from + i;
            out[i] = bar(bound(place, slot).load(std::memory_order_relaxed), slack) - norms_[place];
        }
    }

    T bar(double bound, double slack) const {
        return bound == NONE ? OPEN : rounded_up<T>(bound * scale_ * scale_ * (1 + TIE) + slack);
    }

    // If a list is not full, its bar is at least the k-th smallest approximate distance in this tile:
    // the k-th smallest of the smallest distances of groups of rows.
    void first_bar(const T *products, std::size_t stride, const Block &others, std::size_t skip,
                   std::size_t k, double slack, Desk<T> &desk, T &bar) {
        const std::size_t count = std::min(2 * k, others.size);
        auto &low = desk.column;
        std::fill(low.begin(), low.begin() + count, OPEN);
        for (std::size_t j = 0, group = 0; j < others.size; ++j, group = group + 1 < count ? group + 1 : 0) {
            const T value = products[j * stride] + norms_[others.from + j];
            if (j != skip && value < low[group]) low[group] = value;
        }
        if (count < k) return;
        std::nth_element(low.begin(), low.begin() + (k - 1), low.begin() + count);
        bar = rounded_up<T>(static_cast<double>(low[k - 1]) + 2 * slack);
    }

    void tile(std::size_t a, std::size_t b, std::int32_t own, std::int32_t other, Desk<T> &desk) {
        const Block &A = parts_.blocks[a], &B = parts_.blocks[b];
        const double slack = rounding(a, b);
        const T *products = desk.tile.data();
        multiply(A, B, desk.tile.data());
        bars(a, own, slack, desk.bars_a);
        bars(b, other, slack, desk.bars_b);
        for (std::size_t i = 0; own >= 0 && i < A.size; ++i)
            if (desk.bars_a[i] == OPEN)
                first_bar(products + i * B.size, 1, B, a == b ? i : BLOCK, lists_.sizes[own], slack,
                          desk, desk.bars_a[i]);
        for (std::size_t j = 0; other >= 0 && j < B.size; ++j)
            if (desk.bars_b[j] == OPEN)
                first_bar(products + j, B.size, A, BLOCK, lists_.sizes[other], slack, desk,
                          desk.bars_b[j]);
        collect(A, B, a == b, desk);
        push(a, b, own, slack, desk.pairs_a);
        push(b, a, other, slack, desk.pairs_b);
    }

    void multiply(const Block &A, const Block &B, T *tile) const {
        if (r_ == 0) {
            std::fill(tile, tile + A.size * B.size, T(0));
            return;
        }
        products_of_rows(blas_, packed_.data() + A.from * r_, A.size, packed_.data() + B.from * r_,
                         B.size, r_, tile);
    }

    void collect(const Block &A, const Block &B, bool itself, Desk<T> &desk) const {
        const T *norms = norms_.data() + B.from, *bars = desk.bars_b.data();
        std::uint8_t flags[BLOCK + RUN] = {};  // the flags after the last product are zero
        desk.pairs_a.clear();
        desk.pairs_b.clear();
        for (std::size_t i = 0; i < A.size; ++i) {
            const T *products = desk.tile.data() + i * B.size;
            const T norm = norms_[A.from + i], bar = desk.bars_a[i];
            flag_below(products, norms, bars, norm, bar, B.size, flags);
            for (std::size_t from = 0; from < B.size; from += RUN) {
                std::uint64_t any;
                std::memcpy(&any, flags + from, sizeof any);
                for (; any != 0; any &= any - 1) {
                    const std::size_t j = from + first_byte(any);
                    if (itself && i == j) continue;
                    const auto x = static_cast<std::uint16_t>(i), y = static_cast<std::uint16_t>(j);
                    const T rough = products[j] + norm + norms[j];
                    if (products[j] <= bar - norms[j]) desk.pairs_a.push_back({x, y, rough});
                    if (products[j] <= bars[j] - norm) desk.pairs_b.push_back({y, x, rough});
                }
            }
        }
    }

    void push(std::size_t a, std::size_t b, std::int32_t slot, double slack,
              const std::vector<Pair<T>> &pairs) {
        if (slot < 0 || pairs.empty()) return;
        const std::size_t from = parts_.blocks[a].from, other_from = parts_.blocks[b].from;
        const std::lock_guard<std::mutex> guard(locks_[a]);
        for (const Pair<T> &pair : pairs) {
            const std::size_t place = from + pair.own;
            if (pair.rough <= bar(bound(place, slot).load(std::memory_order_relaxed), slack))
                insert(place, slot, other_from + pair.other);
        }
        update_reach(a, slot);
    }
};

template <typename T>
void search(const Table &table, const Guide &guide, const std::int32_t *classes, const Lists &lists,
            const std::int32_t *previous, const Blas &blas, std::size_t threads,
            std::int32_t *rows, double *distances) {
    Search<T>(table, guide, classes, lists, blas, rows, distances).run(previous, threads);
}

}  // namespace

void nearest(const Table &table, const Guide &guide, const std::int32_t *classes,
             const Lists &lists, const std::int32_t *previous, const Blas &blas, std::size_t threads,
             std::int32_t *rows, double *distances) {
    const auto run = table.r > FLOAT_COLUMNS ? search<double> : search<float>;
    run(table, guide, classes, lists, previous, blas, threads, rows, distances);
}

}  // namespace metricboost
