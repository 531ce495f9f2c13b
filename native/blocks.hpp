// Blocks of near rows: rows halved along their widest column until a block has few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace metricboost {

constexpr std::size_t BLOCK = 256;  // rows of a block: a tile of two stays in the second-level cache

// n rows of r columns, as many numbers apart as the strides say.
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
    std::size_t from, size;  // in the order of the blocks
    std::int32_t label;
};

// Puts `size` rows of `order` into the order of their blocks, which are appended with a label.
void divide(const Table &table, std::int32_t *order, std::size_t from, std::size_t size,
            std::int32_t label, std::vector<Block> &blocks);

// All rows so that those near each other are, for the most part, near in the order.
std::vector<std::int32_t> order_of_near_rows(const Table &table);

}  // namespace metricboost
