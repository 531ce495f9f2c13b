// The door between NumPy and the kernels: shapes are checked here, the GIL is released, and the
// caller owns every array. Indices are trusted (the neighbour search and the term list make them).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "kernels.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T, std::size_t Dim>
using Array = nb::ndarray<T, nb::numpy, nb::ndim<Dim>, nb::c_contig, nb::device::cpu>;
using Matrix = Array<const double, 2>;
using Vector = Array<const double, 1>;
using Index = Array<const std::int32_t, 2>;
using OutMatrix = Array<double, 2>;
using OutVector = Array<double, 1>;
// Rows may lie further apart than their length: some columns of a larger table.
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

void margins(Matrix z, Index same, Index other, OutVector out) {
    const std::size_t n = z.shape(0);
    require(out.shape(0) == n, "out has the wrong length");
    const auto s = neighbors(same, n), o = neighbors(other, n);
    nb::gil_scoped_release release;
    metricboost::margins(z.data(), n, z.shape(1), s, o, out.data());
}

void column_margins(Columns phi, Index same, Index other, OutMatrix out) {
    const std::size_t n = phi.shape(0), q = phi.shape(1);
    require(out.shape(0) == n && out.shape(1) == q, "out has the wrong shape");
    require(phi.stride(0) >= 0 && (q <= 1 || phi.stride(1) == 1), "phi needs contiguous rows");
    const auto s = neighbors(same, n), o = neighbors(other, n);
    const auto stride = static_cast<std::size_t>(phi.stride(0));
    nb::gil_scoped_release release;
    metricboost::column_margins(phi.data(), n, q, stride, s, o, out.data());
}

void laplacian(Matrix z, Vector weight, Index same, Index other, OutMatrix out) {
    const std::size_t n = z.shape(0), s = z.shape(1);
    require(out.shape(0) == n && out.shape(1) == s, "out has the wrong shape");
    require(weight.shape(0) == n, "weight has the wrong length");
    const auto near_same = neighbors(same, n), near_other = neighbors(other, n);
    nb::gil_scoped_release release;
    metricboost::laplacian(z.data(), n, s, weight.data(), near_same, near_other, out.data());
}

void edge_shares(Matrix z, Vector weight, Index same, Index other, OutMatrix out) {
    const std::size_t n = z.shape(0), columns = z.shape(1);
    require(weight.shape(0) == n, "weight has the wrong length");
    require(out.shape(0) == n && out.shape(1) == columns, "out has the wrong shape");
    const auto s = neighbors(same, n), o = neighbors(other, n);
    nb::gil_scoped_release release;
    metricboost::edge_shares(z.data(), n, columns, weight.data(), s, o, out.data());
}

void term_moments(Matrix x, Index factors, OutMatrix moments) {
    const std::size_t p = x.shape(0), n = x.shape(1), q = factors.shape(0);
    require(moments.shape(0) == q && moments.shape(1) == 2, "moments must be q x 2");
    require(factors.shape(1) > 0, "a term needs a factor");
    nb::gil_scoped_release release;
    metricboost::term_moments(x.data(), p, n, factors.data(), q, factors.shape(1), moments.data());
}

void term_columns(Matrix x, Index factors, Matrix moments, OutMatrix out) {
    const std::size_t p = x.shape(0), n = x.shape(1), q = factors.shape(0);
    require(moments.shape(0) == q && moments.shape(1) == 2, "moments must be q x 2");
    require(out.shape(0) == n && out.shape(1) == q, "out has the wrong shape");
    require(factors.shape(1) > 0, "a term needs a factor");
    nb::gil_scoped_release release;
    metricboost::term_columns(x.data(), p, n, factors.data(), q, factors.shape(1), moments.data(),
                              out.data());
}

void pull_back(Columns x, Matrix y, OutMatrix out) {
    const std::size_t n = x.shape(0), q = x.shape(1), s = y.shape(1);
    require(y.shape(0) == n, "x and y differ in rows");
    require(out.shape(0) == s && out.shape(1) == q, "out has the wrong shape");
    require(x.stride(0) >= 0 && (q <= 1 || x.stride(1) == 1), "x needs contiguous rows");
    const auto stride = static_cast<std::size_t>(x.stride(0));
    nb::gil_scoped_release release;
    metricboost::pull_back(x.data(), n, q, stride, y.data(), s, out.data());
}

void smallest(Matrix d, OutIndex out) {
    const std::size_t rows = d.shape(0), m = d.shape(1), k = out.shape(1);
    require(out.shape(0) == rows, "out has the wrong number of rows");
    require(k > 0 && k <= m, "k must lie between 1 and the number of columns");
    nb::gil_scoped_release release;
    metricboost::smallest(d.data(), rows, m, k, out.data());
}

void paired_squared_distances(Matrix a, Matrix b, Index index, OutMatrix out) {
    const std::size_t rows = a.shape(0), k = index.shape(1);
    require(a.shape(1) == b.shape(1), "a and b differ in columns");
    require(index.shape(0) == rows && out.shape(0) == rows && out.shape(1) == k,
            "index and out need one row for each row of a");
    nb::gil_scoped_release release;
    metricboost::paired_squared_distances(a.data(), b.data(), rows, a.shape(1), index.data(), k,
                                          out.data());
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "C++ kernels of metricboost; see native/kernels.hpp for what each computes.";
    m.def("margins", &margins, "z"_a, "same"_a, "other"_a, "out"_a);
    m.def("column_margins", &column_margins, "phi"_a, "same"_a, "other"_a, "out"_a);
    m.def("laplacian", &laplacian, "z"_a, "weight"_a, "same"_a, "other"_a, "out"_a);
    m.def("edge_shares", &edge_shares, "z"_a, "weight"_a, "same"_a, "other"_a, "out"_a);
    m.def("term_moments", &term_moments, "x"_a, "factors"_a, "moments"_a);
    m.def("term_columns", &term_columns, "x"_a, "factors"_a, "moments"_a, "out"_a);
    m.def("pull_back", &pull_back, "x"_a, "y"_a, "out"_a);
    m.def("smallest", &smallest, "d"_a, "out"_a);
    m.def("paired_squared_distances", &paired_squared_distances, "a"_a, "b"_a, "index"_a,
          "out"_a);
}
