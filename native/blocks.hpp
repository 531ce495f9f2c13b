// Blocks of rows that are near each other: rows are halved along their widest column until a block
// has at most BLOCK rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace metricboost {

constexpr std::size_t BLOCK = 256;  // rows of a block: a tile of two blocks fits into the L2 cache

// n rows of r columns. Strides are in numbers, not in bytes.
struct Table {
    const double *data;
    std::size_t n, r;
    std::ptrdiff_t row_stride, column_stride;

    double at(std::size_t row, std::size_t column) const {
        return data[static_cast<std::ptrdiff_t>(row) * row_stride +
                    static_cast<std::ptrdiff_t>(column) * column_stride];
    }
};

struct Block {
    std::size_t from, size;  // places in the order of the rows
    std::int32_t label;
};

// Divides the `size` rows at `from` in `order` into blocks: reorders the rows, and appends the
// blocks with the given label.
void divide(const Table &table, std::int32_t *order, std::size_t from, std::size_t size,
            std::int32_t label, std::vector<Block> &blocks);

// An order of all rows in which most rows that are near each other have close places.
std::vector<std::int32_t> order_of_near_rows(const Table &table);

// Copies the rows of a table in a given order, without gaps.
void copy_in_order(const Table &table, const std::vector<std::int32_t> &order, double *out);

}  // namespace metricboost
