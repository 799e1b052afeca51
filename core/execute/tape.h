// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of scalar programs (a Wengert list): kernels whose derivative by
// hand would be long and easy to get wrong (recurrent cells, sampling at computed places) are
// written once, over a type of number, and run backwards from what they recorded.
#pragma once

#include "core/execute/scalar_functions.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace shardlens {

class Tape;

/// A number that remembers how it came about. Without a tape it is a constant.
class Recorded {
public:
    Recorded(double value = 0) : m_value(value) {} // NOLINT(google-explicit-constructor)
    Recorded(double value, Tape* tape, std::size_t index)
        : m_value(value), m_tape(tape), m_index(index) {}
    double value() const { return m_value; }
    Tape* tape() const { return m_tape; }
    std::size_t index() const { return m_index; }

private:
    double m_value;
    Tape* m_tape = nullptr;
    std::size_t m_index = 0;
};

class Tape {
public:
    Recorded variable(double value);
    /// A result with its slopes by up to two operands.
    static Recorded result(double value, const Recorded& a, double slopeA, const Recorded& b = {},
                           double slopeB = 0);

    void seed(const Recorded& number, double gradient);
    /// Gradients of all that was recorded, by index, for what was seeded.
    std::vector<double> gradients() const;

private:
    struct Entry {
        std::array<std::size_t, 2> from{};
        std::array<double, 2> slope{};
    };
    std::vector<Entry> m_entries;
    std::vector<double> m_seeds;
};

inline double valueOf(double x) {
    return x;
}
inline double valueOf(const Recorded& x) {
    return x.value();
}

inline Recorded operator+(const Recorded& a, const Recorded& b) {
    return Tape::result(a.value() + b.value(), a, 1, b, 1);
}
inline Recorded operator-(const Recorded& a, const Recorded& b) {
    return Tape::result(a.value() - b.value(), a, 1, b, -1);
}
inline Recorded operator*(const Recorded& a, const Recorded& b) {
    return Tape::result(a.value() * b.value(), a, b.value(), b, a.value());
}
inline Recorded operator/(const Recorded& a, const Recorded& b) {
    const double y = a.value() / b.value();
    return Tape::result(y, a, 1 / b.value(), b, -y / b.value());
}
inline double exponential(double x) {
    return std::exp(x);
}
inline Recorded exponential(const Recorded& x) {
    const double y = std::exp(x.value());
    return Tape::result(y, x, y);
}
/// Between two bounds; nothing flows back from what was cut off.
inline double clamped(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}
inline Recorded clamped(const Recorded& x, double low, double high) {
    return x.value() < low || x.value() > high ? Recorded(clamped(x.value(), low, high)) : x;
}

/// One of the functions of Elementwise ops.
inline double applied(const ScalarFunction& function, const ScalarSettings& settings, double x) {
    return function.value({&x, 1}, settings);
}
inline Recorded applied(const ScalarFunction& function, const ScalarSettings& settings,
                        const Recorded& x) {
    const double in = x.value(), y = function.value({&in, 1}, settings);
    const double slope =
        function.derivative != nullptr ? function.derivative({&in, 1}, y, 0, settings) : 0;
    return Tape::result(y, x, slope);
}

} // namespace shardlens
