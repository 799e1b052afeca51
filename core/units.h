// SPDX-License-Identifier: Apache-2.0
// Quantities as people read them: three significant digits and a unit, whatever the locale.
#pragma once

#include <string>

namespace shardlens {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0; ///< bytes

std::string secondsText(double seconds); ///< "12.3 ms"
std::string bytesText(double bytes);     ///< "3.21 GiB", powers of 1024
std::string countText(double count);     ///< "8.03 G", powers of 1000
std::string flopsText(double flops);     ///< "15.2 TFLOP"
/// All digits of a whole number, in groups: "8,030,261,248". Exact up to 2^53.
std::string groupedText(double whole);

} // namespace shardlens
