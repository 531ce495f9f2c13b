// The interface between NumPy and the kernels. The functions check shapes and release the GIL. All
// arrays are owned by the caller. Row and column numbers are checked, too, so that no argument can
// make a kernel read outside of its arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "direct.hpp"
#include "direction.hpp"
#include "flats.hpp"
#include "graph.hpp"
#include "nearest.hpp"
#include "pairs.hpp"
#include "sweeps.hpp"
#include "terms.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T, std::size_t Dim>
using Array = nb::ndarray<T, nb::numpy, nb::ndim<Dim>, nb::c_contig, nb::device::cpu>;
using Matrix = Array<const double, 2>;
using Vector = Array<const double, 1>;
using Index = Array<const std::int32_t, 2>;
using Labels = Array<const std::int32_t, 1>;
using OutMatrix = Array<double, 2>;
using OutVector = Array<double, 1>;
// Any strides are allowed, for columns of a larger table and for transposed tables.
using Columns = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::device::cpu>;
using OutIndex = Array<std::int32_t, 2>;

void require(bool condition, const char *message) {
    if (!condition) throw std::invalid_argument(message);
}

metricboost::Neighbors neighbors(const Index &rows, std::size_t n) {
    require(rows.shape(0) == n, "neighbours and rows differ in number");
    require(rows.shape(1) > 0, "no neighbours");
    return {rows.data(), rows.shape(1)};
}

metricboost::Table table(const Columns &z) {
    return {z.data(), z.shape(0), z.shape(1), z.stride(0), z.stride(1)};
}

void make_graph(metricboost::Graph *self, Index same, Index other, std::optional<Columns> place) {
    const std::size_t n = same.shape(0);
    require(!place || place->shape(0) == n, "places and rows differ in number");
    for (const Index &near : {same, other})
        for (std::size_t i = 0; i < near.size(); ++i)
            require(near.data()[i] >= 0 && static_cast<std::size_t>(near.data()[i]) < n,
                    "no such neighbour");
    const auto near_same = neighbors(same, n), near_other = neighbors(other, n);
    const auto places = place ? table(*place) : metricboost::Table{nullptr, n, 0, 0, 0};
    nb::gil_scoped_release release;
    new (self) metricboost::Graph(n, near_same, near_other, places);
}

void margins(const metricboost::Graph &graph, Matrix z, std::size_t threads, OutVector out) {
    require(z.shape(0) == graph.size(), "z and the graph differ in rows");
    require(out.shape(0) == graph.size(), "out has the wrong length");
    nb::gil_scoped_release release;
    graph.margins(z.data(), z.shape(1), threads, out.data());
}

template <typename T>
void column_margins(const metricboost::Graph &graph, Matrix phi, Labels rows, std::size_t threads,
                    Array<T, 2> out) {
    const std::size_t n = graph.size(), q = phi.shape(1), count = rows.shape(0);
    require(phi.shape(0) == n, "phi and the graph differ in rows");
    require(out.shape(0) == count && out.shape(1) == q, "out has the wrong shape");
    for (std::size_t j = 0; j < count; ++j)
        require(rows.data()[j] >= 0 && static_cast<std::size_t>(rows.data()[j]) < n, "no such row");
    nb::gil_scoped_release release;
    graph.column_margins(phi.data(), q, rows.data(), count, threads, out.data());
}

template <auto Kernel>
void over_edges(const metricboost::Graph &graph, Matrix z, Vector weight, std::size_t threads,
                OutMatrix out) {
    const std::size_t n = graph.size(), s = z.shape(1);
    require(z.shape(0) == n, "z and the graph differ in rows");
    require(out.shape(0) == n && out.shape(1) == s, "out has the wrong shape");
    require(weight.shape(0) == n, "weight has the wrong length");
    nb::gil_scoped_release release;
    (graph.*Kernel)(z.data(), s, weight.data(), threads, out.data());
}

void share_sums(const metricboost::Graph &graph, Matrix z, Vector weight, std::size_t threads,
                OutMatrix out) {
    const std::size_t n = graph.size(), s = z.shape(1);
    require(z.shape(0) == n, "z and the graph differ in rows");
    require(out.shape(0) == s && out.shape(1) == 2, "out has the wrong shape");
    require(weight.shape(0) == n, "weight has the wrong length");
    nb::gil_scoped_release release;
    graph.share_sums(z.data(), s, weight.data(), threads, out.data());
}

// A BLAS or LAPACK routine of SciPy, given as a capsule with its address.
template <typename Routine>
Routine routine(const nb::capsule &capsule) {
    return reinterpret_cast<Routine>(capsule.data());
}

// The first number of a term must be a column. The other numbers may be the padding p.
void check_factors(const Index &factors, std::size_t p) {
    require(factors.shape(1) > 0, "a term needs a factor");
    const std::size_t degree = factors.shape(1);
    for (std::size_t i = 0; i < factors.size(); ++i)
        require(factors.data()[i] >= 0 &&
                    static_cast<std::size_t>(factors.data()[i]) < p + (i % degree != 0),
                "no such column");
}

metricboost::Terms terms(const Matrix &x, const Index &factors) {
    check_factors(factors, x.shape(0));
    return {x.data(), x.shape(0), x.shape(1), factors.data(), factors.shape(0), factors.shape(1)};
}

void term_moments(Matrix x, Index factors, std::size_t threads, OutMatrix moments) {
    const auto chosen = terms(x, factors);
    require(moments.shape(0) == chosen.q && moments.shape(1) == 2, "moments must be q x 2");
    nb::gil_scoped_release release;
    metricboost::term_moments(chosen, threads, moments.data());
}

void term_columns(Matrix x, Index factors, Matrix moments, std::size_t threads, OutMatrix out) {
    const auto chosen = terms(x, factors);
    require(moments.shape(0) == chosen.q && moments.shape(1) == 2, "moments must be q x 2");
    require(out.shape(0) == chosen.n && out.shape(1) == chosen.q, "out has the wrong shape");
    nb::gil_scoped_release release;
    metricboost::term_columns(chosen, moments.data(), threads, out.data());
}

void make_sweeps(metricboost::Sweeps *self, Matrix x, Labels rows, std::size_t degree,
                 std::size_t room) {
    require(x.shape(0) > 0 && degree > 0, "no columns");
    for (std::size_t j = 0; j < rows.shape(0); ++j)
        require(rows.data()[j] >= 0 && static_cast<std::size_t>(rows.data()[j]) < x.shape(1),
                "no such row");
    new (self) metricboost::Sweeps(x.data(), x.shape(0), x.shape(1), rows.data(), rows.shape(0),
                                   degree, room);
}

void append(metricboost::Sweeps &sweeps, Index factors, Matrix moments, std::size_t threads) {
    require(factors.shape(1) == sweeps.degree(), "terms have another degree");
    require(moments.shape(0) == factors.shape(0) && moments.shape(1) == 2, "moments must be q x 2");
    check_factors(factors, sweeps.p());
    nb::gil_scoped_release release;
    sweeps.append(factors.data(), moments.data(), factors.shape(0), threads);
}

void diagonal(metricboost::Sweeps &sweeps, const metricboost::Graph &graph, Vector weight,
              std::size_t threads, OutVector out) {
    require(graph.size() == sweeps.n(), "the table and the graph differ in rows");
    require(weight.shape(0) == sweeps.n(), "weight has the wrong length");
    require(out.shape(0) == sweeps.size(), "out has the wrong length");
    nb::gil_scoped_release release;
    sweeps.diagonal(graph, weight.data(), std::max<std::size_t>(threads, 1), out.data());
}

void pull_back_all(metricboost::Sweeps &sweeps, Matrix y, std::size_t threads, OutMatrix out) {
    require(y.shape(0) == sweeps.n(), "x and y differ in rows");
    require(out.shape(0) == y.shape(1) && out.shape(1) == sweeps.size(), "out has the wrong shape");
    nb::gil_scoped_release release;
    sweeps.pull_back(y.data(), y.shape(1), std::max<std::size_t>(threads, 1), out.data());
}

// Numbers that are not finite cannot be ordered, and no places would be found.
void check_symmetric(const Matrix &A) {
    require(A.shape(0) == A.shape(1), "A must be square");
    for (std::size_t i = 0; i < A.size(); ++i)
        require(std::isfinite(A.data()[i]), "A has numbers that are not finite");
}

void truncated_powers(Matrix A, Labels starts, OutIndex supports) {
    const std::size_t q = A.shape(0), kappa = supports.shape(1);
    check_symmetric(A);
    require(supports.shape(0) == starts.shape(0), "starts and supports differ in number");
    require(kappa > 0 && kappa <= q, "too many or too few entries");
    for (std::size_t s = 0; s < starts.shape(0); ++s)
        require(starts.data()[s] >= 0 && static_cast<std::size_t>(starts.data()[s]) < q,
                "no such start");
    nb::gil_scoped_release release;
    metricboost::truncated_powers(A.data(), q, starts.data(), starts.shape(0), kappa,
                                  supports.data());
}

void leading_eigenvectors(Matrix A, Labels places, Labels ends, nb::capsule dsyevr,
                          OutVector values, OutMatrix vectors) {
    const std::size_t q = A.shape(0), count = ends.shape(0);
    check_symmetric(A);
    require(values.shape(0) == count && vectors.shape(0) == count && vectors.shape(1) == q,
            "the result has the wrong shape");
    std::int32_t before = 0;
    for (std::size_t s = 0; s < count; ++s) {
        require(ends.data()[s] > before, "a block needs a place");
        before = ends.data()[s];
    }
    require(static_cast<std::size_t>(before) == places.shape(0), "places and ends disagree");
    for (std::size_t i = 0; i < places.shape(0); ++i)
        require(places.data()[i] >= 0 && static_cast<std::size_t>(places.data()[i]) < q,
                "no such place");
    const auto solve = routine<metricboost::Dsyevr>(dsyevr);
    nb::gil_scoped_release release;
    metricboost::leading_eigenvectors(A.data(), q, places.data(), ends.data(), count, solve,
                                      values.data(), vectors.data());
}

double step_weight(Vector weight, Vector gain) {
    require(weight.shape(0) == gain.shape(0), "weight and gain differ in length");
    nb::gil_scoped_release release;
    return metricboost::step_weight(weight.data(), gain.data(), weight.shape(0));
}

// Checks that every class has a row in slots, that every slot is -1 or the number of a list, and
// that the sizes of the lists sum to the width of the result.
void check_lists(const Labels &classes, const Index &slots, const Labels &sizes,
                 std::size_t width) {
    const auto n_classes = static_cast<std::int32_t>(slots.shape(0));
    for (std::size_t i = 0; i < classes.shape(0); ++i)
        require(classes.data()[i] >= 0 && classes.data()[i] < n_classes, "no such class");
    for (std::size_t i = 0; i < slots.size(); ++i)
        require(slots.data()[i] >= -1 && slots.data()[i] < static_cast<std::int32_t>(sizes.size()),
                "no such list");
    std::size_t total = 0;
    for (std::size_t l = 0; l < sizes.size(); ++l) {
        require(sizes.data()[l] > 0, "a list needs room for a neighbour");
        total += static_cast<std::size_t>(sizes.data()[l]);
    }
    require(total == width, "the lists do not fill the result");
}

// Checks the shapes of a search by class, and returns its lists.
metricboost::Lists lists_of(const Columns &z, const Labels &classes, const Index &slots,
                            const Labels &sizes, const OutIndex &rows, const OutMatrix &distances) {
    const std::size_t n = z.shape(0), width = rows.shape(1);
    require(classes.shape(0) == n && rows.shape(0) == n, "z, classes and rows differ in number");
    require(distances.shape(0) == n && distances.shape(1) == width, "distances differ from rows");
    require(slots.shape(0) == slots.shape(1), "slots must be square");
    check_lists(classes, slots, sizes, width);
    return {slots.data(), slots.shape(0), sizes.data(), sizes.shape(0)};
}

metricboost::Blas blas_of(const nb::capsule &sgemm, const nb::capsule &dgemm) {
    return {routine<metricboost::Sgemm>(sgemm), routine<metricboost::Dgemm>(dgemm)};
}

void nearest(Columns z, Columns guide, double rounding, Labels classes, Index slots, Labels sizes,
             std::optional<Index> previous, nb::capsule sgemm, nb::capsule dgemm,
             std::size_t threads, OutIndex rows, OutMatrix distances) {
    const auto lists = lists_of(z, classes, slots, sizes, rows, distances);
    require(guide.shape(0) == z.shape(0), "guide and z differ in rows");
    require(!previous ||
                (previous->shape(0) == z.shape(0) && previous->shape(1) == rows.shape(1)),
            "previous has the wrong shape");
    const auto blas = blas_of(sgemm, dgemm);
    nb::gil_scoped_release release;
    metricboost::nearest(table(z), {table(guide), rounding}, classes.data(), lists,
                         previous ? previous->data() : nullptr, blas, threads, rows.data(),
                         distances.data());
}

// Distances that are not numbers cannot be ordered.
void check_finite(const Columns &z) {
    for (std::size_t i = 0; i < z.shape(0); ++i)
        for (std::size_t j = 0; j < z.shape(1); ++j)
            require(std::isfinite(z(i, j)), "rows have numbers that are not finite");
}

void check_finite(const Matrix &rows) {
    for (std::size_t i = 0; i < rows.size(); ++i)
        require(std::isfinite(rows.data()[i]), "rows have numbers that are not finite");
}

void nearest_directly(Columns z, Labels classes, Index slots, Labels sizes, nb::capsule sgemm,
                      nb::capsule dgemm, std::size_t threads, OutIndex rows, OutMatrix distances) {
    const auto lists = lists_of(z, classes, slots, sizes, rows, distances);
    const auto blas = blas_of(sgemm, dgemm);
    check_finite(z);
    nb::gil_scoped_release release;
    metricboost::nearest_directly(table(z), classes.data(), lists, blas, threads, rows.data(),
                                  distances.data());
}

void nearest_of_queries(Matrix queries, Matrix references, nb::capsule sgemm, nb::capsule dgemm,
                        std::size_t threads, OutIndex rows, OutMatrix distances) {
    const std::size_t n = queries.shape(0), k = rows.shape(1), r = queries.shape(1);
    require(references.shape(1) == r, "queries and references differ in columns");
    require(rows.shape(0) == n && distances.shape(0) == n, "queries and rows differ in number");
    require(distances.shape(1) == k, "distances differ from rows");
    require(k > 0 && k <= references.shape(0), "too many or too few neighbours");
    const auto blas = blas_of(sgemm, dgemm);
    check_finite(queries);
    check_finite(references);
    nb::gil_scoped_release release;
    metricboost::nearest_of_queries({queries.data(), n, r},
                                    {references.data(), references.shape(0), r}, k, blas, threads,
                                    rows.data(), distances.data());
}

void flat_distances(Matrix queries, Matrix references, Index rows, Matrix weight, Vector ridges,
                    double floor, std::size_t threads, OutMatrix out) {
    const std::size_t n = queries.shape(0), r = queries.shape(1), k = rows.shape(1);
    require(references.shape(1) == r, "queries and references differ in columns");
    require(rows.shape(0) == n, "queries and rows differ in number");
    require(weight.shape(0) == n && weight.shape(1) == k, "weight differs from rows");
    require(k > 0, "a flat needs rows");
    require(out.shape(0) == n && out.shape(1) == ridges.shape(0), "out has the wrong shape");
    for (std::size_t i = 0; i < rows.size(); ++i)
        require(rows.data()[i] >= 0 &&
                    static_cast<std::size_t>(rows.data()[i]) < references.shape(0),
                "no such row");
    const metricboost::Flats flats{queries.data(), references.data(), n,
                                   r,              rows.data(),       weight.data(),
                                   k,              ridges.data(),     ridges.shape(0),
                                   floor};
    nb::gil_scoped_release release;
    metricboost::flat_distances(flats, threads, out.data());
}

// The pairs as an m x 2 array.
nb::ndarray<nb::numpy, std::int32_t, nb::ndim<2>> pairs_above(Matrix x, Labels ends, double bar,
                                                              double prior, std::size_t wanted,
                                                              std::size_t threads) {
    const metricboost::Classes classes{x.data(), x.shape(0), x.shape(1), ends.data(),
                                       ends.shape(0)};
    std::int32_t before = 0;
    for (std::size_t c = 0; c < classes.count; ++c) {
        require(ends.data()[c] > before, "a class needs a row");
        before = ends.data()[c];
    }
    require(classes.count > 1 && static_cast<std::size_t>(before) == classes.n,
            "the classes do not fill the table");
    require(bar > 0 && prior >= 0 && wanted > 0, "nothing is wanted");
    using Numbers = std::vector<std::int32_t>;
    auto *out = new Numbers();
    nb::capsule owner(out, [](void *p) noexcept { delete static_cast<Numbers *>(p); });
    {
        nb::gil_scoped_release release;
        for (const auto &pair : metricboost::pairs_above(classes, {bar, prior, wanted}, threads))
            out->insert(out->end(), {pair.a, pair.b});
    }
    return {out->data(), {out->size() / 2, 2}, owner};
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "C++ kernels of metricboost; what each computes is in native/*.hpp.";
    nb::class_<metricboost::Graph>(m, "Graph")
        .def("__init__", &make_graph, "same"_a, "other"_a, "place"_a.none())
        .def("margins", &margins)
        .def("column_margins", &column_margins<double>)
        .def("column_margins", &column_margins<float>)
        .def("laplacian", &over_edges<&metricboost::Graph::laplacian>)
        .def("half_laplacian", &over_edges<&metricboost::Graph::half_laplacian>)
        .def("share_sums", &share_sums);
    nb::class_<metricboost::Sweeps>(m, "Sweeps")
        .def("__init__", &make_sweeps, nb::keep_alive<1, 2>())
        .def_prop_ro("size", &metricboost::Sweeps::size)
        .def("append", &append)
        .def("forget_margins", &metricboost::Sweeps::forget_margins)
        .def("diagonal", &diagonal)
        .def("pull_back", &pull_back_all);
    m.def("truncated_powers", &truncated_powers);
    m.def("leading_eigenvectors", &leading_eigenvectors);
    m.def("step_weight", &step_weight);
    m.def("flat_distances", &flat_distances);
    m.def("term_moments", &term_moments);
    m.def("term_columns", &term_columns);
    m.def("nearest_of_queries", &nearest_of_queries);
    m.def("nearest_directly", &nearest_directly);
    m.def("pairs_above", &pairs_above);
    m.def("nearest", &nearest, "z"_a, "guide"_a, "rounding"_a, "classes"_a, "slots"_a, "sizes"_a, "previous"_a.none(),
          "sgemm"_a, "dgemm"_a, "threads"_a, "rows"_a, "distances"_a);
}
