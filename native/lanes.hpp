// Vectors of eight numbers. Sums in eight interleaved parts use wide registers. Their order of
// additions is fixed, so that the results have the same bits on every machine and in every engine.
#pragma once

#include <cstddef>
#include <cstring>

#include "multiversion.hpp"

namespace metricboost {

constexpr std::size_t LANES = 8;

#if defined(__GNUC__) || defined(__clang__)
typedef double Lanes __attribute__((vector_size(8 * sizeof(double))));
#else
struct Lanes {
    double value[LANES];

    double operator[](std::size_t c) const { return value[c]; }
    friend Lanes operator+(Lanes a, Lanes b) {
        for (std::size_t c = 0; c < LANES; ++c) a.value[c] += b.value[c];
        return a;
    }
    friend Lanes operator-(Lanes a, Lanes b) {
        for (std::size_t c = 0; c < LANES; ++c) a.value[c] -= b.value[c];
        return a;
    }
    friend Lanes operator*(Lanes a, Lanes b) {
        for (std::size_t c = 0; c < LANES; ++c) a.value[c] *= b.value[c];
        return a;
    }
    friend Lanes operator*(Lanes a, double b) {
        for (std::size_t c = 0; c < LANES; ++c) a.value[c] *= b;
        return a;
    }
    Lanes &operator+=(Lanes b) { return *this = *this + b; }
};
#endif

// Loads and stores need no alignment. `load_rest` loads the last numbers of a row, followed by
// zeros.
INNER void load(const double *from, Lanes &to) { std::memcpy(&to, from, sizeof to); }
INNER void load(const float *from, Lanes &to) {
#if defined(__GNUC__) || defined(__clang__)
    typedef float Floats __attribute__((vector_size(8 * sizeof(float))));
    Floats narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    to = __builtin_convertvector(narrow, Lanes);
#else
    for (std::size_t c = 0; c < LANES; ++c) to.value[c] = from[c];
#endif
}
INNER void store(const Lanes &from, double *to) { std::memcpy(to, &from, sizeof from); }

template <typename T>
INNER void load_rest(const T *from, std::size_t count, Lanes &to) {
    double rest[LANES] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (std::size_t c = 0; c < count; ++c) rest[c] = from[c];
    load(rest, to);
}

// Vectors of sixteen float32 numbers.
constexpr std::size_t FLOATS = 16;

#if defined(__GNUC__) || defined(__clang__)
typedef float Floats __attribute__((vector_size(16 * sizeof(float))));
INNER void spread(float value, Floats &to) { to = Floats{} + value; }
#else
struct Floats {
    float value[FLOATS];

    friend Floats operator-(Floats a, Floats b) {
        for (std::size_t c = 0; c < FLOATS; ++c) a.value[c] -= b.value[c];
        return a;
    }
    friend Floats operator*(Floats a, Floats b) {
        for (std::size_t c = 0; c < FLOATS; ++c) a.value[c] *= b.value[c];
        return a;
    }
    Floats &operator+=(Floats b) {
        for (std::size_t c = 0; c < FLOATS; ++c) value[c] += b.value[c];
        return *this;
    }
};
INNER void spread(float value, Floats &to) {
    for (std::size_t c = 0; c < FLOATS; ++c) to.value[c] = value;
}
#endif

INNER void load(const float *from, Floats &to) { std::memcpy(&to, from, sizeof to); }
INNER void store(const Floats &from, float *to) { std::memcpy(to, &from, sizeof from); }

INNER double added(const Lanes &part) {
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

}  // namespace metricboost
