#include "direct.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "multiversion.hpp"
#include "rounding.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

constexpr std::size_t QUERIES = 128, REFERENCES = 1024;  // rows of a tile
constexpr std::size_t RUN = 8;                          // flags (one byte each) tested together
constexpr std::size_t GROUP = 16;  // the number of groups of distances is a multiple of this number
// Fewer queries are compared with all references without matrix products, whose preparation takes
// longer.
constexpr std::size_t FEW_QUERIES = 4;
// Among at most FEW_VALUES values, the rank of each is found by comparing all pairs of values, which
// has no branches and is faster than sorting.
constexpr std::size_t FEW_VALUES = 160;
constexpr std::size_t NO_ROW = std::numeric_limits<std::size_t>::max();

// A reference row: its rounded distance, its number, and its exact distance.
struct Neighbor {
    double rounded;
    std::int32_t row;
    double exact;

    bool operator<(const Neighbor &other) const {
        return rounded < other.rounded || (rounded == other.rounded && row < other.row);
    }
};

// Consecutive references.
struct Range {
    std::size_t from, to;
};

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

// The k-th smallest of few values: the largest of the values with fewer than k smaller ones.
template <typename T, typename Count>
INNER T kth_of_few(const T *values, std::size_t size, Count k) {
    Count below[FEW_VALUES];
    for (std::size_t i = 0; i < size; ++i) {
        Count count = 0;
        for (std::size_t j = 0; j < size; ++j) count += values[j] < values[i];
        below[i] = count;
    }
    T found = -std::numeric_limits<T>::infinity();
    for (std::size_t i = 0; i < size; ++i) {
        const T value = below[i] < k ? values[i] : found;
        found = value > found ? value : found;
    }
    return found;
}

MULTIVERSION
float kth_smallest_of_few(const float *values, std::size_t size, std::size_t k) {
    return kth_of_few(values, size, static_cast<std::int32_t>(k));
}

MULTIVERSION
double kth_smallest_of_few(const double *values, std::size_t size, std::size_t k) {
    return kth_of_few(values, size, static_cast<std::int64_t>(k));
}

// The k-th smallest value, k >= 1. The order of the values may change.
template <typename T>
T kth_smallest(std::vector<T> &values, std::size_t k) {
    if (values.size() <= FEW_VALUES) return kth_smallest_of_few(values.data(), values.size(), k);
    std::nth_element(values.begin(), values.begin() + (k - 1), values.end());
    return values[k - 1];
}

// out[j] = the squared distance of the query from the row which[j] of `rows`, which has r columns.
MULTIVERSION
void exact_distances(const double *query, const double *rows, std::size_t r,
                     const std::int32_t *which, std::size_t count, double *out) {
    for (std::size_t j = 0; j < count; ++j)
        out[j] = squared_distance(query, rows + static_cast<std::size_t>(which[j]) * r, r);
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

    double longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
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

// The references, and the numbers that decide between references at equal distances. If `numbers`
// is null, these are the positions of the references.
struct References {
    Points points;
    const std::int32_t *numbers;

    // The references at the positions `which`.
    void neighbors(const double *query, const std::vector<std::int32_t> &which,
                   std::vector<double> &distances, std::vector<Neighbor> &near) const {
        distances.resize(which.size());
        exact_distances(query, points.row(0), points.r, which.data(), which.size(),
                        distances.data());
        near.clear();
        for (std::size_t j = 0; j < which.size(); ++j) {
            const std::int32_t number = numbers ? numbers[which[j]] : which[j];
            near.push_back({to_twelve_digits(distances[j]), number, distances[j]});
        }
    }
};

// Memory for the references of one query.
struct Buffers {
    std::vector<std::int32_t> which;
    std::vector<double> distances;
};

// places[i] = the place of neighbour i in the order of their distances and then of their numbers.
MULTIVERSION
void find_places(const double *rounded, const double *numbers, std::size_t size,
                 std::int64_t *places) {
    for (std::size_t i = 0; i < size; ++i) {
        std::int64_t count = 0;
        for (std::size_t j = 0; j < size; ++j)
            count += (rounded[j] < rounded[i]) |
                     ((rounded[j] == rounded[i]) & (numbers[j] < numbers[i]));
        places[i] = count;
    }
}

void keep_nearest_of_few(std::size_t k, std::vector<Neighbor> &near) {
    double rounded[FEW_VALUES], numbers[FEW_VALUES];
    std::int64_t places[FEW_VALUES];
    Neighbor ordered[FEW_VALUES];
    const std::size_t size = near.size();
    for (std::size_t i = 0; i < size; ++i) {
        rounded[i] = near[i].rounded;
        numbers[i] = near[i].row;
    }
    find_places(rounded, numbers, size, places);
    std::copy(near.begin(), near.end(), ordered);  // distances that are not numbers have no place
    for (std::size_t i = 0; i < size; ++i) ordered[places[i]] = near[i];
    near.assign(ordered, ordered + k);
}

// The k first neighbours, in their order. The others are dropped.
void keep_nearest(std::size_t k, std::vector<Neighbor> &near) {
    if (near.size() <= FEW_VALUES) return keep_nearest_of_few(k, near);
    std::nth_element(near.begin(), near.begin() + (k - 1), near.end());
    near.resize(k);
    std::sort(near.begin(), near.end());
}

void compare_with_all(const double *query, const References &references,
                      const std::vector<Range> &ranges, std::size_t itself, std::size_t k,
                      Buffers &buffers, std::vector<Neighbor> &near) {
    buffers.which.clear();
    for (const Range &range : ranges)
        for (std::size_t j = range.from; j < range.to; ++j)
            if (j != itself) buffers.which.push_back(static_cast<std::int32_t>(j));
    references.neighbors(query, buffers.which, buffers.distances, near);
    keep_nearest(k, near);
}

// The references that may be among the k nearest ones of a query.
template <typename T>
struct Chosen {
    static constexpr T OPEN = std::numeric_limits<T>::infinity();

    std::size_t k;
    double slack;  // the largest error of an approximate distance
    std::vector<std::pair<T, std::int32_t>> near{};
    T bar = OPEN;          // approximate distances above the bar are too large
    std::size_t room = 0;  // the bar is lowered if there are more references

    void add(const T *products, const T *norms, std::size_t first, std::size_t size,
             std::vector<T> &spare) {
        if (bar == OPEN) find_first_bar(products, norms, size, spare);
        std::uint8_t flags[REFERENCES + RUN];
        flag_below(products, norms, bar, size, flags);
        std::memset(flags + size, 0, RUN);
        for (std::size_t from = 0; from < size; from += RUN) {
            std::uint64_t any;
            std::memcpy(&any, flags + from, sizeof any);
            for (; any != 0; any &= any - 1) {
                const std::size_t j = from + first_byte(any);
                near.emplace_back(products[j] + norms[j], static_cast<std::int32_t>(first + j));
            }
        }
        if (near.size() > room) lower_bar(spare);
    }

    void lower_bar(std::vector<T> &spare) {
        if (near.size() <= k) return;
        spare.clear();
        for (const auto &one : near) spare.push_back(one.first);
        const T highest = bar = bar_of(spare);
        near.erase(std::remove_if(near.begin(), near.end(),
                                  [highest](const auto &one) { return one.first > highest; }),
                   near.end());
        room = 2 * near.size() + 4 * k;
    }

  private:
    // The k-th smallest of the smallest distances of groups is at least the k-th smallest distance.
    void find_first_bar(const T *products, const T *norms, std::size_t size,
                        std::vector<T> &spare) {
        const std::size_t count = (2 * k + GROUP - 1) / GROUP * GROUP;
        if (count > size) return;
        spare.assign(count, OPEN);
        group_minima(products, norms, size, count, spare.data());
        bar = bar_of(spare);
    }

    T bar_of(std::vector<T> &values) const {
        const double highest = static_cast<double>(kth_smallest(values, k)) + 2 * slack;
        const double eps = std::numeric_limits<T>::epsilon();
        return static_cast<T>(highest + 2 * eps * std::abs(highest));
    }
};

template <typename T>
class Search {
  public:
    Search(const Points &queries, const References &references, const Blas &blas)
        : Search(queries, references, blas, center_of(references.points)) {}

    // Finds the k nearest references in the ranges, for the queries from `from` to `to`. Query i is
    // reference i if `among` is true, and is then not its own neighbour. Calls write(i, near).
    template <typename Write>
    void run(std::size_t from, std::size_t to, const std::vector<Range> &ranges, std::size_t k,
             bool among, Write write) const {
        std::vector<T> tile(QUERIES * REFERENCES), spare;
        std::vector<Chosen<T>> chosen;
        for (std::size_t i = from; i < to; ++i) chosen.push_back({k, slack(i)});
        for (const Range &range : ranges)
            for (std::size_t first = range.from; first < range.to; first += REFERENCES) {
                const std::size_t size = std::min(REFERENCES, range.to - first);
                multiply(from, to, first, size, tile.data());
                for (std::size_t i = from; i < to; ++i) {
                    T *products = tile.data() + (i - from) * size;
                    if (among && i >= first && i < first + size)
                        products[i - first] = Chosen<T>::OPEN;
                    chosen[i - from].add(products, packed_.norms.data() + first, first, size, spare);
                }
            }
        std::vector<Neighbor> near;
        Buffers buffers;
        for (std::size_t i = from; i < to; ++i) {
            const std::size_t itself = among ? i : NO_ROW;
            find_exactly(i, ranges, itself, chosen[i - from], spare, buffers, near);
            write(i, near);
        }
    }

  private:
    Points queries_;
    References references_;
    Blas blas_;
    double scale_;
    Packed<T> packed_, packed_queries_;
    double longest_;

    Search(const Points &queries, const References &references, const Blas &blas,
           const std::vector<double> &center)
        : queries_(queries), references_(references), blas_(blas),
          scale_(1.0 / std::max({largest_of(queries, center), largest_of(references.points, center),
                                 SMALLEST})),
          packed_(references.points, center, scale_), packed_queries_(queries, center, scale_),
          longest_(packed_.longest()) {}

    double slack(std::size_t query) const {
        return rounding_of_products<T>(packed_queries_.lengths[query] + longest_, queries_.r, scale_);
    }

    void multiply(std::size_t from, std::size_t to, std::size_t first, std::size_t size,
                  T *tile) const {
        const std::size_t r = queries_.r;
        if (r == 0)
            std::fill(tile, tile + (to - from) * size, T(0));
        else
            products_of_rows(blas_, packed_queries_.rows.data() + from * r, to - from,
                             packed_.rows.data() + first * r, size, r, tile);
    }

    void find_exactly(std::size_t i, const std::vector<Range> &ranges, std::size_t itself,
                      Chosen<T> &own, std::vector<T> &spare, Buffers &buffers,
                      std::vector<Neighbor> &near) const {
        own.lower_bar(spare);
        buffers.which.clear();
        for (const auto &one : own.near) buffers.which.push_back(one.second);
        references_.neighbors(queries_.row(i), buffers.which, buffers.distances, near);
        keep_nearest(own.k, near);
        // Infinite distances are equal, so that other references may come first.
        if (std::isinf(near.back().rounded))
            compare_with_all(queries_.row(i), references_, ranges, itself, own.k, buffers, near);
    }
};

template <typename T>
void search_queries(const Points &queries, const References &references, std::size_t k,
                    const Blas &blas, std::size_t threads, std::int32_t *rows, double *distances) {
    const Search<T> search(queries, references, blas);
    const std::vector<Range> all{{0, references.points.n}};
    for_each_piece((queries.n + QUERIES - 1) / QUERIES, threads, [&](std::size_t piece, std::size_t) {
        const std::size_t from = piece * QUERIES, to = std::min(from + QUERIES, queries.n);
        search.run(from, to, all, k, false, [&](std::size_t i, const std::vector<Neighbor> &near) {
            for (std::size_t j = 0; j < k; ++j) {
                rows[i * k + j] = near[j].row;
                distances[i * k + j] = near[j].exact;
            }
        });
    });
}

// The rows in the order of their classes.
struct ByClass {
    std::vector<std::int32_t> order;
    std::vector<double> z;
    std::vector<Range> classes;

    ByClass(const Table &table, const std::int32_t *labels, std::size_t n_classes)
        : order(table.n), z(table.n * table.r) {
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::int32_t a, std::int32_t b) { return labels[a] < labels[b]; });
        copy_in_order(table, order, z.data());
        std::size_t from = 0;
        for (std::size_t c = 0; c < n_classes; ++c) {
            std::size_t to = from;
            while (to < table.n && labels[order[to]] == static_cast<std::int32_t>(c)) ++to;
            classes.push_back({from, to});
            from = to;
        }
    }

    // The rows that are in a list of the rows of a class. Neighbouring classes are joined.
    std::vector<Range> members(const Lists &lists, std::size_t own, std::size_t list) const {
        std::vector<Range> found;
        for (std::size_t c = 0; c < classes.size(); ++c) {
            if (lists.slots[own * lists.classes + c] != static_cast<std::int32_t>(list)) continue;
            if (!found.empty() && found.back().to == classes[c].from) found.back().to = classes[c].to;
            else found.push_back(classes[c]);
        }
        return found;
    }
};

// The queries of a piece of work, and one of their lists.
struct Task {
    Range queries;
    std::vector<Range> members;
    std::size_t k, offset;
};

std::vector<Task> tasks_of(const ByClass &rows, const Lists &lists) {
    std::vector<Task> tasks;
    for (std::size_t own = 0; own < rows.classes.size(); ++own) {
        std::size_t offset = 0;
        for (std::size_t list = 0; list < lists.count; ++list) {
            const auto members = rows.members(lists, own, list);
            std::size_t available = 0;
            for (const Range &range : members) available += range.to - range.from;
            if (lists.slots[own * lists.classes + own] == static_cast<std::int32_t>(list))
                available = std::max<std::size_t>(available, 1) - 1;
            const std::size_t k = std::min<std::size_t>(lists.sizes[list], available);
            const Range all = rows.classes[own];
            for (std::size_t from = all.from; k > 0 && from < all.to; from += QUERIES)
                tasks.push_back({{from, std::min(from + QUERIES, all.to)}, members, k, offset});
            offset += static_cast<std::size_t>(lists.sizes[list]);
        }
    }
    return tasks;
}

template <typename T>
void search_by_class(const Table &table, const std::int32_t *labels, const Lists &lists,
                     const Blas &blas, std::size_t threads, std::int32_t *rows, double *distances) {
    const ByClass sorted(table, labels, lists.classes);
    const Points points{sorted.z.data(), table.n, table.r};
    const Search<T> search(points, {points, sorted.order.data()}, blas);
    const std::size_t width = static_cast<std::size_t>(
        std::accumulate(lists.sizes, lists.sizes + lists.count, std::int32_t{0}));
    std::fill(rows, rows + table.n * width, -1);
    std::fill(distances, distances + table.n * width, std::numeric_limits<double>::infinity());
    const auto tasks = tasks_of(sorted, lists);
    for_each_piece(tasks.size(), threads, [&](std::size_t piece, std::size_t) {
        const Task &task = tasks[piece];
        search.run(
            task.queries.from, task.queries.to, task.members, task.k, true,
            [&](std::size_t i, const std::vector<Neighbor> &near) {
                const std::size_t start = sorted.order[i] * width + task.offset;
                for (std::size_t j = 0; j < task.k; ++j) {
                    rows[start + j] = near[j].row;
                    distances[start + j] = near[j].exact;
                }
            });
    });
}

}  // namespace

void nearest_of_queries(const Points &queries, const Points &references, std::size_t k,
                        const Blas &blas, std::size_t threads, std::int32_t *rows,
                        double *distances) {
    const References all{references, nullptr};
    if (queries.n >= FEW_QUERIES) {
        const auto run = queries.r > FLOAT_COLUMNS ? search_queries<double> : search_queries<float>;
        return run(queries, all, k, blas, threads, rows, distances);
    }
    std::vector<Neighbor> near;
    Buffers buffers;
    for (std::size_t i = 0; i < queries.n; ++i) {
        compare_with_all(queries.row(i), all, {{0, references.n}}, NO_ROW, k, buffers, near);
        for (std::size_t j = 0; j < k; ++j) {
            rows[i * k + j] = near[j].row;
            distances[i * k + j] = near[j].exact;
        }
    }
}

void nearest_directly(const Table &table, const std::int32_t *classes, const Lists &lists,
                      const Blas &blas, std::size_t threads, std::int32_t *rows,
                      double *distances) {
    if (table.n == 0) return;
    const auto run = table.r > FLOAT_COLUMNS ? search_by_class<double> : search_by_class<float>;
    run(table, classes, lists, blas, threads, rows, distances);
}

}  // namespace metricboost
