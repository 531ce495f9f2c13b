// Comparison of numbers up to rounding errors, as in _rounding.py.
#pragma once

#include <cstdint>
#include <cstring>

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

}  // namespace metricboost
