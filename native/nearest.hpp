// Exact search for the nearest rows, by class, without an n x n array.
//
// Rows are divided into blocks of rows of one class that are near each other. A tile has the pairs
// of rows of two blocks. Approximate distances of a tile are computed by one matrix product. If a
// row may be among the k nearest of the other row of its pair, with an allowance for rounding, the
// distance of the pair is computed again from differences in float64. Tiles of blocks that are too
// far apart are skipped.
//
// Neighbours are ordered by their distance rounded to twelve digits, and then by their number. This
// is a total order, so the result does not depend on blocks, threads or rounding errors of the
// products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blas.hpp"
#include "blocks.hpp"

namespace metricboost {

// The neighbour lists of a row. For a row of class a, rows of class b are in the list slots[a, b],
// or in no list if the entry is -1. List l has the sizes[l] nearest rows.
struct Lists {
    const std::int32_t *slots;  // classes x classes
    std::size_t classes;
    const std::int32_t *sizes;  // count
    std::size_t count;
};

// Coordinates of the rows in a few directions in which the rows vary most: some coordinates of the
// rotated rows, or the rows themselves. Distances in the guide are at most the distances of the
// rows, up to the rounding error of a coordinate. The guide determines the blocks and the tiles
// that are skipped. The result does not depend on it.
struct Guide {
    Table table;
    double rounding;
};

// rows and distances are n x (sum of the sizes), one list after the other. If a list has fewer rows
// than its size, the other places are -1 and infinity. `previous` is null or has the shape of rows.
// It has rows that are expected to be near, for example from an earlier search, and makes the
// search faster.
void nearest(const Table &table, const Guide &guide, const std::int32_t *classes,
             const Lists &lists, const std::int32_t *previous, const Blas &blas, std::size_t threads,
             std::int32_t *rows, double *distances);

}  // namespace metricboost
