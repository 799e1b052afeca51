// SPDX-License-Identifier: Apache-2.0
// One axis of a chart: which values it spans, where a value lies, where its ticks are. Values that
// spread over more than a decade are laid out by their logarithm. Ticks are round in the unit of
// the axis (seconds, or GiB).
#pragma once

#include <span>
#include <vector>

namespace shardlens {

class ChartScale {
public:
    ChartScale() = default;
    /// Spans the values with a little room. @param unit ticks are round multiples of it
    static ChartScale of(std::span<const double> values, double unit = 1);

    double low() const { return m_low; }
    double high() const { return m_high; }
    bool isLogarithmic() const { return m_logarithmic; }
    double fraction(double value) const;       ///< 0 at low(), 1 at high(); not clipped
    double value(double fraction) const;       ///< inverse of fraction()
    std::vector<double> ticks(int most) const; ///< ascending, inside the span

private:
    double m_low = 0, m_high = 1, m_unit = 1;
    bool m_logarithmic = false;
};

} // namespace shardlens
