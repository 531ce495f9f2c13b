#include "queries.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "multiversion.hpp"
#include "rounding.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

constexpr std::size_t QUERIES = 64, REFERENCES = 2048;  // rows of a tile
constexpr std::size_t RUN = 8;                         // flags (one byte each) tested together
constexpr std::size_t GROUP = 16;  // the number of groups of distances is a multiple of this number
// Fewer queries are compared with all references directly: preparing the products takes longer.
constexpr std::size_t FEW_QUERIES = 4;

using Neighbor = std::pair<double, std::int32_t>;  // a rounded distance, and the row

Neighbor exact(const Points &queries, std::size_t i, const Points &references, std::size_t j) {
    const double distance = squared_distance(queries.row(i), references.row(j), queries.r);
    return {to_twelve_digits(distance), static_cast<std::int32_t>(j)};
}

// Writes the k nearest of the candidates.
void write_nearest(const Points &queries, std::size_t i, const Points &references, std::size_t k,
                   std::vector<Neighbor> &near, std::int32_t *rows, double *distances) {
    std::nth_element(near.begin(), near.begin() + (k - 1), near.end());
    std::sort(near.begin(), near.begin() + k);
    for (std::size_t j = 0; j < k; ++j) {
        rows[i * k + j] = near[j].second;
        distances[i * k + j] =
            squared_distance(queries.row(i), references.row(near[j].second), queries.r);
    }
}

void compare_with_all(const Points &queries, std::size_t i, const Points &references,
                      std::size_t k, std::int32_t *rows, double *distances) {
    std::vector<Neighbor> near(references.n);
    for (std::size_t j = 0; j < references.n; ++j) near[j] = exact(queries, i, references, j);
    write_nearest(queries, i, references, k, near, rows, distances);
}

template <typename T>
INNER void flag(const T *products, const T *norms, T bar, std::size_t size, std::uint8_t *flags) {
    for (std::size_t j = 0; j < size; ++j) flags[j] = products[j] + norms[j] <= bar;
}

MULTIVERSION
void flag_below(const float *products, const float *norms, float bar, std::size_t size,
                std::uint8_t *flags) {
    flag(products, norms, bar, size, flags);
}

MULTIVERSION
void flag_below(const double *products, const double *norms, double bar, std::size_t size,
                std::uint8_t *flags) {
    flag(products, norms, bar, size, flags);
}

// The smallest approximate distance of every group. Group g has the references g, g + count, ...
template <typename T>
INNER void minima(const T *products, const T *norms, std::size_t size, std::size_t count, T *low) {
    for (std::size_t from = 0; from + count <= size; from += count)
        for (std::size_t g = 0; g < count; ++g) {
            const T value = products[from + g] + norms[from + g];
            low[g] = value < low[g] ? value : low[g];
        }
}

MULTIVERSION
void group_minima(const float *products, const float *norms, std::size_t size, std::size_t count,
                  float *low) {
    minima(products, norms, size, count, low);
}

MULTIVERSION
void group_minima(const double *products, const double *norms, std::size_t size, std::size_t count,
                  double *low) {
    minima(products, norms, size, count, low);
}

// Rows centred and scaled, so that their squares neither overflow nor underflow in T.
template <typename T>
struct Packed {
    std::vector<T> rows, norms;
    std::vector<double> lengths;

    Packed(const Points &points, const std::vector<double> &center, double scale)
        : rows(points.n * points.r), norms(points.n), lengths(points.n) {
        for (std::size_t i = 0; i < points.n; ++i) {
            double norm = 0.0;
            for (std::size_t c = 0; c < points.r; ++c) {
                const T value = static_cast<T>((points.row(i)[c] - center[c]) * scale);
                rows[i * points.r + c] = value;
                norm += static_cast<double>(value) * static_cast<double>(value);
            }
            norms[i] = static_cast<T>(norm);
            lengths[i] = std::sqrt(norm);
        }
    }
};

std::vector<double> center_of(const Points &points) {
    std::vector<double> center(points.r, 0.0);
    for (std::size_t i = 0; i < points.n; ++i)
        for (std::size_t c = 0; c < points.r; ++c)
            center[c] += points.row(i)[c] / static_cast<double>(points.n);
    return center;
}

double largest_of(const Points &points, const std::vector<double> &center) {
    double largest = 0.0;
    for (std::size_t i = 0; i < points.n; ++i)
        for (std::size_t c = 0; c < points.r; ++c)
            largest = std::max(largest, std::abs(points.row(i)[c] - center[c]));
    return largest;
}

template <typename T>
class QuerySearch {
  public:
    QuerySearch(const Points &queries, const Points &references, std::size_t k, const Blas &blas)
        : QuerySearch(queries, references, k, blas, center_of(references)) {}

    // Finds the neighbours of the queries from `from` to `to`.
    void run(std::size_t from, std::size_t to, std::int32_t *rows, double *distances) const {
        std::vector<T> tile(QUERIES * REFERENCES), spare;
        std::vector<Chosen> chosen(to - from);
        for (std::size_t i = from; i < to; ++i) chosen[i - from].slack = slack(i);
        for (std::size_t first = 0; first < references_.n; first += REFERENCES) {
            const std::size_t size = std::min(REFERENCES, references_.n - first);
            products_of_rows(blas_, packed_queries_.rows.data() + from * queries_.r, to - from,
                             packed_.rows.data() + first * queries_.r, size, queries_.r,
                             tile.data());
            for (std::size_t i = 0; i < to - from; ++i)
                add(tile.data() + i * size, first, size, chosen[i], spare);
        }
        std::vector<Neighbor> near;
        for (std::size_t i = from; i < to; ++i) write(i, chosen[i - from], near, spare, rows, distances);
    }

  private:
    static constexpr T OPEN = std::numeric_limits<T>::infinity();

    // The references that may be among the k nearest ones of a query.
    struct Chosen {
        std::vector<std::pair<T, std::int32_t>> near;
        T bar = OPEN;          // approximate distances above the bar are too large
        double slack = 0.0;    // the largest error of an approximate distance
        std::size_t room = 0;  // the bar is lowered if there are more references
    };

    Points queries_, references_;
    std::size_t k_;
    Blas blas_;
    double scale_;
    Packed<T> packed_, packed_queries_;
    double longest_;

    QuerySearch(const Points &queries, const Points &references, std::size_t k, const Blas &blas,
                const std::vector<double> &center)
        : queries_(queries), references_(references), k_(k), blas_(blas),
          scale_(1.0 / std::max({largest_of(queries, center), largest_of(references, center),
                                 SMALLEST})),
          packed_(references, center, scale_), packed_queries_(queries, center, scale_),
          longest_(*std::max_element(packed_.lengths.begin(), packed_.lengths.end())) {}

    double slack(std::size_t query) const {
        return rounding_of_products<T>(packed_queries_.lengths[query] + longest_, queries_.r, scale_);
    }

    void add(const T *products, std::size_t first, std::size_t size, Chosen &own,
             std::vector<T> &spare) const {
        const T *norms = packed_.norms.data() + first;
        if (own.bar == OPEN) own.bar = first_bar(products, norms, size, own.slack, spare);
        std::uint8_t flags[REFERENCES + RUN];
        flag_below(products, norms, own.bar, size, flags);
        std::memset(flags + size, 0, RUN);
        for (std::size_t from = 0; from < size; from += RUN) {
            std::uint64_t any;
            std::memcpy(&any, flags + from, sizeof any);
            if (any == 0) continue;
            for (std::size_t j = from; j < from + RUN; ++j)
                if (flags[j])
                    own.near.emplace_back(products[j] + norms[j], static_cast<std::int32_t>(first + j));
        }
        if (own.near.size() > own.room) lower(own, spare);
    }

    // The k-th smallest of the smallest distances of groups is at least the k-th smallest distance.
    T first_bar(const T *products, const T *norms, std::size_t size, double slack,
                std::vector<T> &spare) const {
        const std::size_t count = (2 * k_ + GROUP - 1) / GROUP * GROUP;
        if (count > size) return OPEN;
        spare.assign(count, OPEN);
        group_minima(products, norms, size, count, spare.data());
        return bar_of(spare, slack);
    }

    T bar_of(std::vector<T> &values, double slack) const {
        std::nth_element(values.begin(), values.begin() + (k_ - 1), values.end());
        const double bar = static_cast<double>(values[k_ - 1]) + 2 * slack;
        const double eps = std::numeric_limits<T>::epsilon();
        return static_cast<T>(bar + 2 * eps * std::abs(bar));
    }

    void lower(Chosen &own, std::vector<T> &spare) const {
        if (own.near.size() < k_) return;
        spare.clear();
        for (const auto &one : own.near) spare.push_back(one.first);
        const T bar = own.bar = bar_of(spare, own.slack);
        own.near.erase(std::remove_if(own.near.begin(), own.near.end(),
                                      [bar](const auto &one) { return one.first > bar; }),
                       own.near.end());
        own.room = 2 * own.near.size() + 4 * k_;
    }

    void write(std::size_t i, Chosen &own, std::vector<Neighbor> &near, std::vector<T> &spare,
               std::int32_t *rows, double *distances) const {
        lower(own, spare);
        near.clear();
        for (const auto &one : own.near) near.push_back(exact(queries_, i, references_, one.second));
        write_nearest(queries_, i, references_, k_, near, rows, distances);
        // Infinite distances are equal, so that other references may come first.
        if (std::isinf(near[k_ - 1].first))
            compare_with_all(queries_, i, references_, k_, rows, distances);
    }
};

template <typename T>
void search(const Points &queries, const Points &references, std::size_t k, const Blas &blas,
            std::size_t threads, std::int32_t *rows, double *distances) {
    const QuerySearch<T> search(queries, references, k, blas);
    for_each_piece((queries.n + QUERIES - 1) / QUERIES, threads, [&](std::size_t piece, std::size_t) {
        search.run(piece * QUERIES, std::min((piece + 1) * QUERIES, queries.n), rows, distances);
    });
}

}  // namespace

void nearest_of_queries(const Points &queries, const Points &references, std::size_t k,
                        const Blas &blas, std::size_t threads, std::int32_t *rows,
                        double *distances) {
    if (queries.n < FEW_QUERIES || queries.r == 0) {
        for (std::size_t i = 0; i < queries.n; ++i)
            compare_with_all(queries, i, references, k, rows, distances);
        return;
    }
    const auto run = queries.r > FLOAT_COLUMNS ? search<double> : search<float>;
    run(queries, references, k, blas, threads, rows, distances);
}

}  // namespace metricboost
