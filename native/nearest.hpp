// Exact nearest rows, by class, without an n x n array.
//
// Rows are put into blocks of near rows of one class, and a tile is the pairs of two blocks. A tile
// is measured roughly by one matrix product, in few digits; what may be among the k nearest to
// either row of a pair, rounding allowed for, is measured again from differences in float64. Tiles
// whose blocks lie too far apart for that are left out.
//
// Neighbours are in order of their distance to twelve digits, then of their number: a total order,
// so the result does not depend on blocks, threads or the rounding of the products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blocks.hpp"

namespace metricboost {

// The routines of BLAS, as SciPy hands them out.
using Sgemm = void (*)(char *, char *, int *, int *, int *, float *, float *, int *, float *, int *,
                       float *, float *, int *);
using Dgemm = void (*)(char *, char *, int *, int *, int *, double *, double *, int *, double *,
                       int *, double *, double *, int *);
struct Blas {
    Sgemm sgemm;
    Dgemm dgemm;
};

// Which lists of neighbours a row keeps: a row of class a keeps rows of class b in the list
// slots[a, b], or nowhere where that is -1. List l has the sizes[l] nearest.
struct Lists {
    const std::int32_t *slots;  // classes x classes
    std::size_t classes;
    const std::int32_t *sizes;  // count
    std::size_t count;
};

// Where rows lie, in directions in which they lie far apart: some coordinates of the rows turned, or
// the rows themselves. No two rows are farther apart here than they are, but for the rounding of
// a coordinate. Blocks are made of it, and tiles left out; the result does not depend on it.
struct Guide {
    Table table;
    double rounding;
};

// rows and distances are n x (sum of the sizes), list after list; they hold -1 and
// infinity where a list has fewer rows. `previous`, n x (the same) or null, has rows that belong
// into the lists and may be near: the nearer, the less work.
void nearest(const Table &table, const Guide &guide, const std::int32_t *classes,
             const Lists &lists, const std::int32_t *previous, const Blas &blas, std::size_t threads,
             std::int32_t *rows, double *distances);

}  // namespace metricboost
