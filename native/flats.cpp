#include "flats.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lanes.hpp"
#include "multiversion.hpp"
#include "threads.hpp"

namespace metricboost {

namespace {

constexpr std::size_t PIECE = 64;   // queries in a piece of work
constexpr std::size_t DEPTH = 128;  // coordinates that are centred at a time
constexpr std::size_t TILE = 4;     // rows of the Gram matrix that are computed at a time

// The numbers of one query. The points are the k nearest rows, centred and multiplied by the roots
// of their shares of the weight, and then the centred query. `size` is k + 1, rounded up to whole
// vectors; the points beyond are zero.
struct Workspace {
    std::size_t size;
    std::vector<double> share, root, mean;
    std::vector<double> points;  // DEPTH x size, transposed
    std::vector<double> gram, ridged;  // size x size, of which the upper triangle is used

    explicit Workspace(std::size_t k)
        : size((k + LANES) / LANES * LANES), share(k), root(k), mean(DEPTH),
          points(DEPTH * size, 0.0), gram(size * size), ridged(size * size) {}
};

INNER void shares(const Flats &flats, std::size_t i, Workspace &work) {
    const double *weight = flats.weight + i * flats.k;
    double total = 0;
    for (std::size_t j = 0; j < flats.k; ++j) total += weight[j];
    for (std::size_t j = 0; j < flats.k; ++j) {
        work.share[j] = weight[j] / total;
        work.root[j] = std::sqrt(work.share[j]);
    }
}

// Puts the coordinates `from` to `from + depth` of the points of query i into `points`.
INNER void gather(const Flats &flats, std::size_t i, std::size_t from, std::size_t depth,
                  Workspace &work) {
    const std::int32_t *rows = flats.rows + i * flats.k;
    double *mean = work.mean.data(), *points = work.points.data();
    std::fill(mean, mean + depth, 0.0);
    for (std::size_t j = 0; j < flats.k; ++j) {
        const double *row = flats.references + rows[j] * flats.r + from;
        const double share = work.share[j];
        for (std::size_t d = 0; d < depth; ++d) mean[d] += share * row[d];
    }
    for (std::size_t j = 0; j < flats.k; ++j) {
        const double *row = flats.references + rows[j] * flats.r + from;
        const double root = work.root[j];
        for (std::size_t d = 0; d < depth; ++d)
            points[d * work.size + j] = root * (row[d] - mean[d]);
    }
    const double *query = flats.queries + i * flats.r + from;
    for (std::size_t d = 0; d < depth; ++d)
        points[d * work.size + flats.k] = query[d] - mean[d];
}

// Adds the inner products of the gathered coordinates to the upper triangle of the Gram matrix.
INNER void add_products(std::size_t depth, Workspace &work) {
    const std::size_t size = work.size;
    const double *points = work.points.data();
    for (std::size_t a = 0; a < size; a += TILE)
        for (std::size_t b = a / LANES * LANES; b < size; b += LANES) {
            double *out = work.gram.data() + a * size + b;
            Lanes sum[TILE];
            for (std::size_t t = 0; t < TILE; ++t) load(out + t * size, sum[t]);
            for (std::size_t d = 0; d < depth; ++d) {
                const double *point = points + d * size;
                Lanes right;
                load(point + b, right);
                for (std::size_t t = 0; t < TILE; ++t) sum[t] += right * point[a + t];
            }
            for (std::size_t t = 0; t < TILE; ++t) store(sum[t], out + t * size);
        }
}

// |x|^2 - b'(G + rI)^-1 b, the last pivot if the ridged Gram matrix with the query is eliminated.
INNER double eliminated(double ridge, std::size_t k, Workspace &work) {
    const std::size_t size = work.size;
    double *matrix = work.ridged.data();
    std::copy(work.gram.begin(), work.gram.end(), matrix);
    for (std::size_t j = 0; j < k; ++j) matrix[j * size + j] += ridge;
    for (std::size_t j = 0; j < k; ++j) {
        const double *pivot = matrix + j * size;
        const double inverse = 1 / pivot[j];
        for (std::size_t i = j + 1; i <= k; ++i) {
            const double factor = pivot[i] * inverse;
            double *row = matrix + i * size;
            for (std::size_t c = i / LANES * LANES; c < size; c += LANES) {
                Lanes own, other;
                load(row + c, own);
                load(pivot + c, other);
                store(own - other * factor, row + c);
            }
        }
    }
    return matrix[k * size + k];
}

MULTIVERSION
void distances_of(const Flats &flats, std::size_t begin, std::size_t end, Workspace &work,
                  double *out) {
    for (std::size_t i = begin; i < end; ++i) {
        shares(flats, i, work);
        std::fill(work.gram.begin(), work.gram.end(), 0.0);
        for (std::size_t from = 0; from < flats.r; from += DEPTH) {
            const std::size_t depth = std::min(DEPTH, flats.r - from);
            gather(flats, i, from, depth, work);
            add_products(depth, work);
        }
        double trace = 0;
        for (std::size_t j = 0; j < flats.k; ++j) trace += work.gram[j * work.size + j];
        for (std::size_t j = 0; j < flats.n_ridges; ++j) {
            const double ridge = flats.ridges[j] * (trace / static_cast<double>(flats.k));
            out[i * flats.n_ridges + j] = eliminated(std::max(ridge, flats.floor), flats.k, work);
        }
    }
}

}  // namespace

void flat_distances(const Flats &flats, std::size_t threads, double *out) {
    const std::size_t pieces = (flats.n + PIECE - 1) / PIECE;
    threads = std::max<std::size_t>(std::min(threads, pieces), 1);
    std::vector<Workspace> work(threads, Workspace(flats.k));
    for_each_piece(pieces, threads, [&](std::size_t piece, std::size_t worker) {
        const std::size_t end = std::min((piece + 1) * PIECE, flats.n);
        distances_of(flats, piece * PIECE, end, work[worker], out);
    });
}

}  // namespace metricboost
