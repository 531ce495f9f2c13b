// The matrix products of SciPy's BLAS. Its routines do not modify their operands, but their
// parameters are not const.
#pragma once

#include <cstddef>

namespace metricboost {

using Sgemm = void (*)(char *, char *, int *, int *, int *, float *, float *, int *, float *, int *,
                       float *, float *, int *);
using Dgemm = void (*)(char *, char *, int *, int *, int *, double *, double *, int *, double *,
                       int *, double *, double *, int *);
struct Blas {
    Sgemm sgemm;
    Dgemm dgemm;
};

// out[i, j] = -2 a_i b_j for n_a rows a and n_b rows b of r columns, in C order.
inline void products_of_rows(const Blas &blas, const float *a, std::size_t n_a, const float *b,
                             std::size_t n_b, std::size_t r, float *out) {
    int m = static_cast<int>(n_b), n = static_cast<int>(n_a), k = static_cast<int>(r);
    float alpha = -2.0f, beta = 0.0f;
    char transposed = 'T', plain = 'N';
    blas.sgemm(&transposed, &plain, &m, &n, &k, &alpha, const_cast<float *>(b), &k,
               const_cast<float *>(a), &k, &beta, out, &m);
}

inline void products_of_rows(const Blas &blas, const double *a, std::size_t n_a, const double *b,
                             std::size_t n_b, std::size_t r, double *out) {
    int m = static_cast<int>(n_b), n = static_cast<int>(n_a), k = static_cast<int>(r);
    double alpha = -2.0, beta = 0.0;
    char transposed = 'T', plain = 'N';
    blas.dgemm(&transposed, &plain, &m, &n, &k, &alpha, const_cast<double *>(b), &k,
               const_cast<double *>(a), &k, &beta, out, &m);
}

}  // namespace metricboost
