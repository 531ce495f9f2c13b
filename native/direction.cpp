#include "direction.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "multiversion.hpp"
#include "rounding.hpp"

namespace metricboost {

namespace {

constexpr int MAX_POWERS = 50;
constexpr double SMALL_GAIN = 1e-4;  // iterations end if one increases the objective by less

// A sparse unit vector, A times the vector, and the objective.
struct Iterate {
    std::vector<std::int32_t> index;
    std::vector<double> coef, image;
    double value = 0.0;
};

MULTIVERSION
void add_row(const double *row, double factor, std::size_t q, double *sum) {
    for (std::size_t c = 0; c < q; ++c) sum[c] += factor * row[c];
}

class Powers {
  public:
    Powers(const double *A, std::size_t q, std::size_t kappa)
        : A_(A), q_(q), kappa_(kappa), rounded_(q), sorted_(q) {}

    Iterate from(std::int32_t start) const {
        Iterate own;
        own.index.assign(kappa_, start);
        own.coef.assign(kappa_, 0.0);
        own.coef[0] = 1.0;
        own.image.assign(A_ + start * q_, A_ + (start + 1) * q_);
        own.value = own.image[start];
        return own;
    }

    void run(Iterate &own, double first_shift) {
        double shift = 0.0;
        for (int iteration = 0; iteration < MAX_POWERS; ++iteration) {
            Iterate next = truncated(own, shift);
            if (next.index == own.index) return;
            apply(next);
            if (next.value < own.value) {
                shift = std::max(10 * shift, first_shift);
                continue;
            }
            const bool still = next.value <= own.value + SMALL_GAIN * std::abs(own.value);
            own = std::move(next);
            if (still) return;
        }
    }

  private:
    const double *A_;
    std::size_t q_, kappa_;
    std::vector<double> rounded_, sorted_;

    // One iteration on A + shift I: the kappa largest entries, normalised.
    Iterate truncated(const Iterate &own, double shift) {
        std::vector<double> target = own.image;
        for (std::size_t j = 0; j < kappa_; ++j) target[own.index[j]] += shift * own.coef[j];
        Iterate next;
        largest(target, next.index);
        double length = 0.0;
        for (const std::int32_t place : next.index) {
            next.coef.push_back(target[place]);
            length += target[place] * target[place];
        }
        length = std::sqrt(length);
        if (length > 0.0)
            for (double &value : next.coef) value /= length;
        return next;
    }

    void apply(Iterate &own) const {
        own.image.assign(q_, 0.0);
        for (std::size_t j = 0; j < kappa_; ++j)
            add_row(A_ + own.index[j] * q_, own.coef[j], q_, own.image.data());
        for (std::size_t j = 0; j < kappa_; ++j) own.value += own.coef[j] * own.image[own.index[j]];
    }

    // The places of the kappa largest absolute values, in ascending order. Values are compared to
    // twelve digits, and among equal values smaller places are preferred.
    void largest(const std::vector<double> &values, std::vector<std::int32_t> &places) {
        for (std::size_t c = 0; c < q_; ++c) rounded_[c] = to_twelve_digits(std::abs(values[c]));
        sorted_ = rounded_;
        std::nth_element(sorted_.begin(), sorted_.begin() + (kappa_ - 1), sorted_.end(),
                         [](double a, double b) { return a > b; });
        const double bar = sorted_[kappa_ - 1];
        const auto above = std::count_if(rounded_.begin(), rounded_.end(),
                                         [bar](double value) { return value > bar; });
        std::size_t room = kappa_ - static_cast<std::size_t>(above);
        for (std::size_t c = 0; c < q_; ++c) {
            const bool at_bar = rounded_[c] == bar && room > 0;
            if (at_bar) --room;
            if (at_bar || rounded_[c] > bar) places.push_back(static_cast<std::int32_t>(c));
        }
    }
};

// One side of the balance of a step weight: the logarithms of weight * |gain|, and the gains.
struct Side {
    std::vector<double> logs, gains;

    void add(double first_order, double gain) {
        logs.push_back(std::log(std::abs(first_order)));
        gains.push_back(gain);
    }

    // log sum exp(logs - w gains) and its derivative by w.
    void at(double w, double &value, double &slope) const {
        double top = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < logs.size(); ++i) top = std::max(top, logs[i] - w * gains[i]);
        double total = 0.0, moved = 0.0;
        for (std::size_t i = 0; i < logs.size(); ++i) {
            const double term = std::exp(logs[i] - w * gains[i] - top);
            total += term;
            moved += term * gains[i];
        }
        value = top + std::log(total);
        slope = -moved / total;
    }
};

constexpr double MAX_GAIN = 10.0, TOLERANCE = 1e-13;
constexpr int MAX_NEWTON = 200;

double root(const Side &gaining, const Side &losing, double bound) {
    double low = 0.0, high = std::numeric_limits<double>::infinity(), w = 0.0;
    for (int iteration = 0; iteration < MAX_NEWTON; ++iteration) {
        double up, up_slope, down, down_slope;
        losing.at(w, down, down_slope);
        gaining.at(w, up, up_slope);
        const double value = down - up, slope = down_slope - up_slope;
        if (w == bound && value <= 0) return bound;
        (value < 0 ? low : high) = w;
        const double newton = std::min(w - value / slope, bound);
        if (std::abs(newton - w) <= TOLERANCE * w || high - low <= TOLERANCE * low)
            return std::min(std::max(newton, low), high);
        w = low < newton && newton < high ? newton : (low + std::min(high, bound)) / 2;
    }
    return low;
}

}  // namespace

void truncated_powers(const double *A, std::size_t q, const std::int32_t *starts, std::size_t count,
                      std::size_t kappa, std::int32_t *supports) {
    Powers powers(A, q, kappa);
    double largest = 0.0;
    for (std::size_t s = 0; s < count; ++s)
        for (std::size_t c = 0; c < q; ++c)
            largest = std::max(largest, std::abs(A[starts[s] * q + c]));
    for (std::size_t s = 0; s < count; ++s) {
        Iterate own = powers.from(starts[s]);
        powers.run(own, 0.1 * largest);
        std::copy(own.index.begin(), own.index.end(), supports + s * kappa);
    }
}

void leading_eigenvectors(const double *A, std::size_t q, const std::int32_t *places,
                          const std::int32_t *ends, std::size_t count, Dsyevr dsyevr,
                          double *values, double *vectors) {
    std::fill(vectors, vectors + count * q, 0.0);
    std::vector<double> block, vector, work, eigenvalues;
    std::vector<int> whole;
    for (std::size_t s = 0; s < count; ++s) {
        const std::int32_t *own = places + (s > 0 ? ends[s - 1] : 0);
        int size = ends[s] - (s > 0 ? ends[s - 1] : 0);
        const auto n = static_cast<std::size_t>(size);
        if (s > 0 && ends[s] - ends[s - 1] == ends[s - 1] - (s > 1 ? ends[s - 2] : 0) &&
            std::equal(own, own + n, own - n)) {  // the same support as before
            values[s] = values[s - 1];
            std::copy(vectors + (s - 1) * q, vectors + s * q, vectors + s * q);
            continue;
        }
        block.resize(n * n);
        vector.resize(n);
        eigenvalues.resize(n);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) block[i * n + j] = A[own[i] * q + own[j]];
        int n_work = 26 * size, n_whole = 10 * size, found = 0, failed = 0, support[2];
        work.resize(26 * n);
        whole.resize(10 * n);
        char with_vectors = 'V', by_number = 'I', part = 'L';
        double unused = 0.0, precise = 0.0;
        dsyevr(&with_vectors, &by_number, &part, &size, block.data(), &size, &unused, &unused,
               &size, &size, &precise, &found, eigenvalues.data(), vector.data(), &size, support,
               work.data(), &n_work, whole.data(), &n_whole, &failed);
        if (failed != 0 || found != 1) throw std::runtime_error("eigenvalues did not converge");
        std::size_t top = 0;
        for (std::size_t i = 1; i < n; ++i)
            if (std::abs(vector[i]) > std::abs(vector[top])) top = i;
        const double sign = vector[top] < 0.0 ? -1.0 : 1.0;
        values[s] = eigenvalues[0];
        for (std::size_t i = 0; i < n; ++i) vectors[s * q + own[i]] = sign * vector[i];
    }
}

double step_weight(const double *weight, const double *gain, std::size_t n) {
    Side gaining, losing;
    double slope = 0.0, total = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const double first_order = weight[i] * gain[i];
        slope += first_order;
        total += weight[i];
        if (first_order > 0) gaining.add(first_order, gain[i]);
        if (first_order < 0) losing.add(first_order, gain[i]);
    }
    if (!(slope > 0)) return 0.0;
    const double bound = MAX_GAIN * total / slope;
    return losing.logs.empty() ? bound : root(gaining, losing, bound);
}

}  // namespace metricboost
