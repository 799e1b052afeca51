// SPDX-License-Identifier: Apache-2.0
// See units.h.
#include "core/units.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

namespace shardlens {

namespace {

struct Unit {
    double size;
    const char* name;
};

// Descending; the last one takes everything smaller.
constexpr Unit kSeconds[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
constexpr Unit kBytes[] = {{1024.0 * 1024 * 1024 * 1024, "TiB"},
                           {1024.0 * 1024 * 1024, "GiB"},
                           {1024.0 * 1024, "MiB"},
                           {1024.0, "KiB"},
                           {1, "B"}};
constexpr Unit kCounts[] = {{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"},
                            {1e6, "M"},  {1e3, "k"},  {1, ""}};

std::string threeDigits(double value) {
    const double magnitude = std::abs(value);
    if (magnitude >= 99.95 || value == std::trunc(value)) return fmt::format("{:.0f}", value);
    return fmt::format("{:.{}f}", value, magnitude >= 9.995 ? 1 : 2);
}

std::string inUnits(double value, std::span<const Unit> units) {
    if (std::isnan(value)) return "unknown";
    if (std::isinf(value)) return fmt::format("{}∞ {}", value < 0 ? "-" : "", units.front().name);
    std::size_t i = 0;
    // Rounding to three digits must not give "1000 ms" where "1 s" is meant.
    while (i + 1 < units.size() && std::abs(value) < units[i].size * 0.9995) ++i;
    return fmt::format("{} {}", threeDigits(value / units[i].size), units[i].name);
}

} // namespace

std::string secondsText(double seconds) {
    return inUnits(seconds, kSeconds);
}

std::string bytesText(double bytes) {
    return inUnits(bytes, kBytes);
}

std::string countText(double count) {
    std::string text = inUnits(count, kCounts);
    if (text.ends_with(' ')) text.pop_back();
    return text;
}

std::string flopsText(double flops) {
    return inUnits(flops, kCounts) + "FLOP";
}

std::string groupedText(double whole) {
    std::string text = fmt::format("{:.0f}", whole);
    const std::size_t first = text.starts_with('-') ? 1 : 0;
    for (std::size_t i = text.size(); i > first + 3;) {
        i -= 3;
        text.insert(i, 1, ',');
    }
    return text;
}

} // namespace shardlens
