#include "pairs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "multiversion.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

// Products are summed in registers, for HEIGHT columns with WIDTH columns each.
constexpr std::size_t HEIGHT = 4, WIDTH = 16, TILE = HEIGHT * WIDTH;
// Sums of more rows are added in parts, so that rounding errors stay small.
constexpr std::size_t PART = 256;
// Relative error allowed for in the mean of squared products. float32 has seven digits.
constexpr float ROUNDING = 1e-3F;
// Squared standard errors below this are rounding errors. Columns have a variance of 1.
constexpr float SMALLEST = 1e-18F;
// Smaller values are replaced by 0. Their squared products could be subnormal, which is slow.
constexpr double NOTHING = 1e-9;
// A list of pairs with at least this many pairs, and MANY times the wanted pairs, is shortened.
constexpr std::size_t LONG = 4096, MANY = 4, NO_LIMIT = std::size_t{1} << 40;

// The kernels are templates on a vector V of float32 numbers. Vectors that are wider than the
// registers of the machine would be kept in memory.
template <typename V>
constexpr std::size_t LENGTH = sizeof(V) / sizeof(float);

template <typename V>
INNER void load(const float *from, V &to) {
    std::memcpy(&to, from, sizeof to);
}
template <typename V>
INNER void store(const V &from, float *to) {
    std::memcpy(to, &from, sizeof from);
}
template <typename V>
INNER void raise(V &to, const V &least) {
    to = to > least ? to : least;
}

// The columns in float32, scaled to a variance of 1, in panels of WIDTH columns. A panel has a row
// of WIDTH numbers for each row of the table.
std::vector<float> panels(const Classes &classes) {
    const std::size_t p = classes.p, n = classes.n;
    std::vector<float> packed((p + WIDTH - 1) / WIDTH * WIDTH * n, 0.0F);
    for (std::size_t j = 0; j < p; ++j) {
        const double *x = classes.x + j * n;
        double largest = 0.0, squares = 0.0;
        for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, std::fabs(x[k]));
        const double unit = 1 / largest;  // infinite for constant columns
        if (!(unit < std::numeric_limits<double>::max())) continue;
        for (std::size_t k = 0; k < n; ++k) squares += (x[k] * unit) * (x[k] * unit);
        const double inverse = std::sqrt(static_cast<double>(n) / squares);
        float *to = packed.data() + j / WIDTH * WIDTH * n + j % WIDTH;
        for (std::size_t k = 0; k < n; ++k) {
            const double value = x[k] * unit * inverse;
            if (std::fabs(value) > NOTHING) to[k * WIDTH] = static_cast<float>(value);
        }
    }
    return packed;
}

// The sums over some rows, for HEIGHT columns with LENGTH columns: products, and TILE numbers further
// on squared products. They are added to earlier sums unless these rows are the `first` ones.
template <typename V>
INNER void add_rows(const float *x, const float *y, std::size_t rows, bool first, float *sums) {
    V product[HEIGHT] = {}, square[HEIGHT] = {}, other;
    for (std::size_t k = 0; k < rows; ++k, x += WIDTH, y += WIDTH) {
        load(y, other);
        for (std::size_t i = 0; i < HEIGHT; ++i) {
            const V own = x[i] * other;
            product[i] += own;
            square[i] += own * own;
        }
    }
    for (std::size_t i = 0; i < HEIGHT; ++i, sums += WIDTH) {
        if (!first) {
            load(sums, other);
            product[i] += other;
            load(sums + TILE, other);
            square[i] += other;
        }
        store(product[i], sums);
        store(square[i], sums + TILE);
    }
}

// The squared scores of LENGTH pairs, from the sums over the rows of each class.
class Scores {
  public:
    Scores(const Classes &classes, double prior) : moments_(classes.count * 2 * WIDTH) {
        double freedom = 0.0;
        for (std::size_t c = 0; c < classes.count; ++c) freedom += free(classes.size(c));
        for (std::size_t c = 0; c < classes.count; ++c) {
            const double n = classes.size(c), whole = free(n) + prior;
            of_.push_back({static_cast<float>(n), static_cast<float>(1 / n),
                           static_cast<float>(1 / whole),
                           static_cast<float>(prior / (whole * n * freedom))});
        }
    }

    // The means of squared products are multiplied by `factor`.
    template <typename V>
    INNER_MEMBER void find(const float *sums, float factor, V &out) {
        for (std::size_t c = 0; c < of_.size(); ++c) {
            V mean, variance;
            load(sums + c * 2 * TILE, mean);
            load(sums + c * 2 * TILE + TILE, variance);
            mean = of_[c].share * mean;
            variance = (of_[c].share * factor) * variance - mean * mean;
            raise(variance, V{});
            store(mean, moments_.data() + c * 2 * WIDTH);
            store(variance, moments_.data() + c * 2 * WIDTH + WIDTH);
        }
        if (of_.size() == 2)
            of_two(out);
        else
            of_several(out);
    }

  private:
    // The squared standard error is own * variance + shared * (sum of n * variance).
    struct Class {
        float n, share, own, shared;
    };

    static double free(double n) { return std::max(n - 1, 1.0); }

    template <typename V>
    INNER_MEMBER void moments(std::size_t c, V &mean, V &variance) const {
        load(moments_.data() + c * 2 * WIDTH, mean);
        load(moments_.data() + c * 2 * WIDTH + WIDTH, variance);
    }

    template <typename V>
    INNER_MEMBER void of_two(V &out) const {
        V mean, other, variance, error;
        moments(0, mean, variance);
        moments(1, other, error);
        error = of_[0].own * variance + of_[1].own * error;
        const V apart = mean - other;
        raise(error, SMALLEST + V{});
        out = apart * apart / error;
    }

    // The sum of precision * (mean - their weighted mean)^2. Means relative to the first one reduce
    // rounding errors.
    template <typename V>
    INNER_MEMBER void of_several(V &out) const {
        V mean, variance, centre, precision, error;
        V common = {}, precisions = {}, first = {}, second = {};
        for (std::size_t c = of_.size(); c-- > 0;) {
            moments(c, centre, variance);
            common += of_[c].n * variance;
        }
        for (std::size_t c = 0; c < of_.size(); ++c) {
            moments(c, mean, variance);
            error = of_[c].own * variance + of_[c].shared * common;
            raise(error, SMALLEST + V{});
            precision = 1.0F / error;
            const V apart = mean - centre, weighted = precision * apart;
            precisions += precision;
            first += weighted;
            second += weighted * apart;
        }
        out = second - first * first / precisions;
    }

    std::vector<Class> of_;
    std::vector<float> moments_;  // means, and variances, for each class
};

// The pairs that one thread has found. A long list is shortened: a pair is removed if as many pairs
// as wanted have larger scores, and the bar is raised to their scores.
class Found {
  public:
    Found(float bar, std::size_t wanted)
        : bar_(bar), wanted_(wanted), most_(std::max(MANY * std::min(wanted, NO_LIMIT), LONG)) {}

    float bar() const { return bar_; }
    const std::vector<Pair> &pairs() const { return pairs_; }

    void add(const Pair &pair) {
        pairs_.push_back(pair);
        if (pairs_.size() >= most_) shorten();
    }

  private:
    void shorten() {
        const auto last = pairs_.begin() + static_cast<std::ptrdiff_t>(wanted_) - 1;
        std::nth_element(pairs_.begin(), last, pairs_.end(),
                         [](const Pair &one, const Pair &other) { return one.low > other.low; });
        bar_ = std::max(bar_, last->low);
        pairs_.erase(std::remove_if(pairs_.begin(), pairs_.end(),
                                    [&](const Pair &pair) { return pair.high < bar_; }),
                     pairs_.end());
        most_ = std::max(most_, 2 * pairs_.size());
    }

    float bar_;
    std::size_t wanted_, most_;
    std::vector<Pair> pairs_;
};

// The memory of one thread.
struct Worker {
    Scores scores;
    Found found;
    std::vector<float> sums;  // 2 * TILE for each class

    Worker(const Classes &classes, const Bar &bar)
        : scores(classes, bar.prior),
          found(static_cast<float>(bar.score * bar.score), bar.wanted),
          sums(classes.count * 2 * TILE) {}
};

// Adds the pairs of column a with LENGTH columns from b on.
template <typename V>
INNER void add_pairs(Worker &worker, std::size_t p, std::size_t a, std::size_t b,
                     const float *sums) {
    V values;
    float high[LENGTH<V>], low[LENGTH<V>];
    worker.scores.find(sums, 1 - ROUNDING, values);
    store<V>((1 + ROUNDING) * values, high);
    worker.scores.find(sums, 1 + ROUNDING, values);
    store<V>((1 - ROUNDING) * values, low);
    for (std::size_t l = 0; l < LENGTH<V>; ++l)
        if (high[l] > worker.found.bar() && a <= b + l && b + l < p)
            worker.found.add({low[l], high[l], static_cast<std::int32_t>(a),
                              static_cast<std::int32_t>(b + l)});
}

// The pairs of HEIGHT columns, from column a on, with a panel of columns, from column b on.
template <typename V>
INNER void scan_tile(Worker &worker, const Classes &classes, const float *packed, std::size_t a,
                     std::size_t b) {
    const float *x = packed + a / WIDTH * WIDTH * classes.n + a % WIDTH;
    const float *y = packed + b * classes.n;
    float *sums = worker.sums.data();
    for (std::size_t c = 0, from = 0; c < classes.count; ++c) {
        const std::size_t start = from, end = static_cast<std::size_t>(classes.ends[c]);
        for (; from < end; from = std::min(from + PART, end))
            for (std::size_t l = 0; l < WIDTH; l += LENGTH<V>)
                add_rows<V>(x + from * WIDTH, y + from * WIDTH + l, std::min(PART, end - from),
                            from == start, sums + c * 2 * TILE + l);
    }
    V score, best = {};
    for (std::size_t l = 0; l < TILE; l += LENGTH<V>) {
        worker.scores.find(sums + l, 1 - ROUNDING, score);
        raise(best, score);
    }
    float largest[LENGTH<V>];
    store<V>((1 + ROUNDING) * best, largest);
    if (*std::max_element(largest, largest + LENGTH<V>) <= worker.found.bar()) return;
    for (std::size_t l = 0; l < TILE; l += LENGTH<V>)
        add_pairs<V>(worker, classes.p, a + l / WIDTH, b + l % WIDTH, sums + l);
}

// One function for each set of instructions, of which the loader chooses the widest one.
#define SCAN(V)                                                                              \
    void scan(Worker &worker, const Classes &classes, const float *packed, std::size_t a,    \
              std::size_t b) {                                                               \
        scan_tile<V>(worker, classes, packed, a, b);                                         \
    }
#if defined(__GNUC__) || defined(__clang__)
typedef float Four __attribute__((vector_size(4 * sizeof(float))));
typedef float Eight __attribute__((vector_size(8 * sizeof(float))));
typedef float Sixteen __attribute__((vector_size(16 * sizeof(float))));
#ifdef MULTIVERSIONED
__attribute__((target("avx512f"))) SCAN(Sixteen)
__attribute__((target("avx2"))) SCAN(Eight)
__attribute__((target("default"))) SCAN(Four)
#else
SCAN(Four)
#endif
#else
SCAN(float)
#endif

}  // namespace

std::vector<Pair> pairs_above(const Classes &classes, const Bar &bar, std::size_t threads) {
    const std::vector<float> packed = panels(classes);
    std::vector<Worker> workers(std::max<std::size_t>(threads, 1), Worker(classes, bar));
    const std::size_t p = classes.p, count = (p + WIDTH - 1) / WIDTH;
    for_each_piece(count, workers.size(), [&](std::size_t piece, std::size_t worker) {
        const std::size_t end = std::min((piece + 1) * WIDTH, p);
        for (std::size_t b = piece * WIDTH; b < p; b += WIDTH)
            for (std::size_t a = piece * WIDTH; a < end; a += HEIGHT)
                scan(workers[worker], classes, packed.data(), a, b);
    });
    std::vector<Pair> all;
    for (const Worker &worker : workers)
        all.insert(all.end(), worker.found.pairs().begin(), worker.found.pairs().end());
    return all;
}

}  // namespace metricboost
