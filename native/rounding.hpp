// Comparison of numbers up to rounding errors, as in _rounding.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace metricboost {

// Rounds to 36 significant bits, with halves to even.
inline double to_twelve_digits(double value) {
    constexpr std::uint64_t DROPPED = (std::uint64_t{1} << 17) - 1;
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits += (DROPPED >> 1) + ((bits >> 17) & 1);
    bits &= ~DROPPED;
    std::memcpy(&value, &bits, sizeof bits);
    return value;
}

// The first byte of a word that is not zero, on a machine that stores the lowest byte first. Every
// byte of the word is 0 or 1.
inline std::size_t first_byte(std::uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return static_cast<std::size_t>(__builtin_ctzll(word)) / 8;
#else
    std::size_t place = 0;
    for (; (word & 0xff) == 0; word >>= 8) ++place;
    return place;
#endif
}

// Products are computed in float64 if there are more columns. float32 would not be precise enough.
constexpr std::size_t FLOAT_COLUMNS = 32768;
// Larger than the relative difference of two distances that are equal to twelve digits.
constexpr double TIE = 1e-10;
// Subnormal numbers have few digits. Squared distances that differ by less than this are equal.
constexpr double COARSE = 0x1p-1055;
// Tables with smaller numbers are not scaled to 1, because the square of the factor would overflow.
constexpr double SMALLEST = 1e-150;

// The largest error of an approximate squared distance, which is the sum of two squared norms and a
// product in T, for rows of r numbers that are multiplied by `scale`. `lengths` is the sum of the
// norms of the two rows. The difference of two distances that are equal to twelve digits is included.
template <typename T>
double rounding_of_products(double lengths, std::size_t r, double scale) {
    const double terms = static_cast<double>(r + 8), eps = std::numeric_limits<T>::epsilon();
    return (2 * terms * eps + TIE) * lengths * lengths + terms * std::numeric_limits<T>::min() +
           COARSE * scale * scale;
}

}  // namespace metricboost
