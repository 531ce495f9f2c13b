// Tests that every kernel gives the same bits with one thread and with four. With ThreadSanitizer
// (make sanitize), also tests that there are no data races.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "../graph.hpp"
#include "../nearest.hpp"
#include "../terms.hpp"

namespace {

// A matrix product as plain loops. BLAS is not used, because it is not built with the sanitizer.
template <typename T>
void gemm(char *ta, char *tb, int *m, int *n, int *k, T *alpha, T *a, int *lda, T *b, int *ldb,
          T *beta, T *c, int *ldc) {
    for (int j = 0; j < *n; ++j)
        for (int i = 0; i < *m; ++i) {
            T sum = 0;
            for (int l = 0; l < *k; ++l)
                sum += (*ta == 'N' || *ta == 'n' ? a[i + l * *lda] : a[l + i * *lda]) *
                       (*tb == 'N' || *tb == 'n' ? b[l + j * *ldb] : b[j + l * *ldb]);
            T &out = c[i + j * *ldc];
            out = *alpha * sum + (*beta == 0 ? 0 : *beta * out);
        }
}

std::mt19937_64 generator(0);

std::vector<double> noise(std::size_t size) {
    std::normal_distribution<double> normal;
    std::vector<double> out(size);
    for (double &value : out) value = normal(generator);
    return out;
}

int failures = 0;

// Runs a kernel with one thread and with four, and compares the `size` numbers of the results.
template <typename T, typename Run>
void same(const char *name, std::size_t size, Run run) {
    std::vector<T> alone(size), together(size);
    run(std::size_t{1}, alone.data());
    run(std::size_t{4}, together.data());
    const bool equal = std::memcmp(alone.data(), together.data(), size * sizeof(T)) == 0;
    std::printf("%-16s %s\n", name, equal ? "the same" : "DIFFERENT");
    failures += !equal;
}

}  // namespace

int main() {
    using namespace metricboost;
    const std::size_t n = 3000, p = 12, r = 6, k = 8, s = 5;
    const auto z = noise(n * r), wide = noise(n * s), weight_noise = noise(n);
    std::vector<double> weight(n);
    for (std::size_t i = 0; i < n; ++i) weight[i] = i % 2 ? std::exp(weight_noise[i]) : 0.0;
    std::vector<std::int32_t> classes(n), rows(n);
    for (std::size_t i = 0; i < n; ++i) {
        classes[i] = static_cast<std::int32_t>(i % 3 == 0);
        rows[i] = static_cast<std::int32_t>(i);
    }

    const std::vector<std::int32_t> slots{0, 1, 1, 0};
    const std::vector<std::int32_t> sizes{static_cast<std::int32_t>(k), static_cast<std::int32_t>(k)};
    const Table table{z.data(), n, r, static_cast<std::ptrdiff_t>(r), 1};
    const Lists lists{slots.data(), 2, sizes.data(), 2};
    const Blas blas{&gemm<float>, &gemm<double>};
    std::vector<std::int32_t> found(n * 2 * k);
    std::vector<double> far(n * 2 * k);
    same<std::int32_t>("nearest", found.size(), [&](std::size_t threads, std::int32_t *out) {
        nearest(table, {table, 0.0}, classes.data(), lists, nullptr, blas, threads, out, far.data());
        found.assign(out, out + found.size());
    });
    same<std::int32_t>("nearest again", found.size(), [&](std::size_t threads, std::int32_t *out) {
        nearest(table, {table, 0.0}, classes.data(), lists, found.data(), blas, threads, out,
                far.data());
    });

    std::vector<std::int32_t> near(n * k), away(n * k);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < k; ++j) {
            near[i * k + j] = found[i * 2 * k + j];
            away[i * k + j] = found[i * 2 * k + k + j];
        }
    const Graph graph(n, {near.data(), k}, {away.data(), k}, table);
    same<double>("margins", n, [&](std::size_t threads, double *out) {
        graph.margins(z.data(), r, threads, out);
    });
    same<double>("column margins", n * s, [&](std::size_t threads, double *out) {
        graph.column_margins(wide.data(), s, rows.data(), n, threads, out);
    });
    same<double>("laplacian", n * s, [&](std::size_t threads, double *out) {
        graph.laplacian(wide.data(), s, weight.data(), threads, out);
    });
    same<double>("half laplacian", n * s, [&](std::size_t threads, double *out) {
        graph.half_laplacian(wide.data(), s, weight.data(), threads, out);
    });
    same<double>("share sums", 2 * s, [&](std::size_t threads, double *out) {
        graph.share_sums(wide.data(), s, weight.data(), threads, out);
    });

    const auto x = noise(p * n);
    const std::size_t q = 300;
    std::vector<std::int32_t> factors(q * 2);
    for (std::size_t t = 0; t < q; ++t) {
        factors[2 * t] = static_cast<std::int32_t>(t % p);
        factors[2 * t + 1] = static_cast<std::int32_t>(t < p ? p : (t / p) % p);
    }
    const Terms terms{x.data(), p, n, factors.data(), q, 2};
    std::vector<double> moments(q * 2);
    same<double>("term moments", q * 2, [&](std::size_t threads, double *out) {
        term_moments(terms, threads, out);
        moments.assign(out, out + moments.size());
    });
    same<double>("term columns", n * q, [&](std::size_t threads, double *out) {
        term_columns(terms, moments.data(), threads, out);
    });
    same<double>("pull back", s * q, [&](std::size_t threads, double *out) {
        pull_back(terms, moments.data(), wide.data(), s, threads, out);
    });
    return failures ? 1 : 0;
}
