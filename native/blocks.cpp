#include "blocks.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace metricboost {

namespace {

constexpr std::size_t SAMPLE = 256;  // number of rows from which the widest column is chosen

std::size_t widest_column(const Table &table, const std::int32_t *order, std::size_t size) {
    constexpr double NONE = std::numeric_limits<double>::infinity();
    const std::size_t step = std::max<std::size_t>(size / SAMPLE, 1);
    std::size_t widest = 0;
    double width = -1.0;
    for (std::size_t c = 0; c < table.r; ++c) {
        double low = NONE, high = -NONE;
        for (std::size_t i = 0; i < size; i += step) {
            const double value = table.at(order[i], c);
            low = std::min(low, value);
            high = std::max(high, value);
        }
        if (high - low > width) {
            width = high - low;
            widest = c;
        }
    }
    return widest;
}

}  // namespace

void divide(const Table &table, std::int32_t *order, std::size_t from, std::size_t size,
            std::int32_t label, std::vector<Block> &blocks) {
    if (size <= BLOCK) {
        blocks.push_back({from, size, label});
        return;
    }
    const std::size_t half = (size + BLOCK - 1) / BLOCK / 2 * BLOCK;
    if (table.r > 0) {
        std::int32_t *begin = order + from;
        const std::size_t widest = widest_column(table, begin, size);
        std::nth_element(begin, begin + half, begin + size, [&](std::int32_t a, std::int32_t b) {
            const double x = table.at(a, widest), y = table.at(b, widest);
            return x < y || (x == y && a < b);
        });
    }
    divide(table, order, from, half, label, blocks);
    divide(table, order, from + half, size - half, label, blocks);
}

std::vector<std::int32_t> order_of_near_rows(const Table &table) {
    std::vector<std::int32_t> order(table.n);
    std::iota(order.begin(), order.end(), 0);
    std::vector<Block> blocks;
    divide(table, order.data(), 0, table.n, 0, blocks);
    return order;
}

void copy_in_order(const Table &table, const std::vector<std::int32_t> &order, double *out) {
    constexpr std::size_t SIDE = 64;  // squares of SIDE x SIDE numbers are fast if columns are contiguous
    for (std::size_t from = 0; from < table.n; from += SIDE)
        for (std::size_t first = 0; first < table.r; first += SIDE)
            for (std::size_t i = from; i < std::min(from + SIDE, table.n); ++i)
                for (std::size_t c = first; c < std::min(first + SIDE, table.r); ++c)
                    out[i * table.r + c] = table.at(order[i], c);
}

}  // namespace metricboost
