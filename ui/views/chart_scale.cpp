// SPDX-License-Identifier: Apache-2.0
// See chart_scale.h.
#include "ui/views/chart_scale.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kDecades = 12; // highest over lowest from which on an axis is logarithmic
constexpr double kRoom = 0.04;  // of the span, at either end

/// 1, 2 or 5 times a power of ten that is at least `least`.
double roundStep(double least) {
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double digit : {1.0, 2.0, 5.0})
        if (digit * power >= least * (1 - 1e-9)) return digit * power;
    return 10 * power;
}

} // namespace

ChartScale ChartScale::of(std::span<const double> values, double unit) {
    ChartScale scale;
    scale.m_unit = unit;
    if (values.empty()) return scale;
    const auto [least, most] = std::ranges::minmax(values);
    scale.m_logarithmic = least > 0 && most > kDecades * least;
    if (scale.m_logarithmic) {
        const double room = std::pow(most / least, kRoom);
        scale.m_low = least / room;
        scale.m_high = most * room;
        return scale;
    }
    const double span = std::max({most - least, 0.1 * std::abs(most), 1e-12 * unit});
    scale.m_low = least >= 0 && least < 2 * span ? 0 : least - kRoom * span;
    scale.m_high = most + kRoom * (most - scale.m_low) + (most == 0 ? unit : 0);
    return scale;
}

double ChartScale::fraction(double value) const {
    if (!m_logarithmic) return (value - m_low) / (m_high - m_low);
    return std::log(std::max(value, 1e-300) / m_low) / std::log(m_high / m_low);
}

double ChartScale::value(double fraction) const {
    if (!m_logarithmic) return m_low + fraction * (m_high - m_low);
    return m_low * std::pow(m_high / m_low, fraction);
}

std::vector<double> ChartScale::ticks(int most) const {
    std::vector<double> found;
    if (most < 1) return found;
    if (m_logarithmic) {
        // The finest of: 1-2-5, decades, every second decade, …
        const double first = std::floor(std::log10(m_low / m_unit));
        const double last = std::ceil(std::log10(m_high / m_unit));
        for (int every = 0; every < 20; ++every) {
            found.clear();
            for (double power = first; power <= last; power += std::max(every, 1))
                for (const double digit : {1.0, 2.0, 5.0}) {
                    const double tick = m_unit * digit * std::pow(10, power);
                    if ((every == 0 || digit == 1) && tick >= m_low && tick <= m_high)
                        found.push_back(tick);
                }
            if (found.size() <= static_cast<std::size_t>(most)) break;
        }
        return found;
    }
    const double step = roundStep((m_high - m_low) / m_unit / most) * m_unit;
    for (double n = std::ceil(m_low / step - 1e-9) + 0.0; n * step <= m_high; ++n) // no -0
        found.push_back(n * step);
    return found;
}

} // namespace shardlens
