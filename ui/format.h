// SPDX-License-Identifier: Apache-2.0
// Numbers and names as people read them: three significant digits with a unit, in the C locale.
#pragma once

#include "core/cost/collective.h"
#include "core/model/op.h"
#include "ui/theme.h"

#include <QString>

namespace shardlens {

QString formatTime(double seconds);     ///< "12.3 ms"
QString formatBytes(double bytes);      ///< "3.21 GiB"
QString formatCount(double count);      ///< "8.03 G"
QString formatDelta(double seconds);    ///< "+1.20 ms", "−3.4 µs", "±0"
QString formatBytesDelta(double bytes); ///< "+1.2 GiB", "±0"
QString formatPercent(double fraction); ///< "0.12 %"
/// A time in the cost model's own unit: seconds get a prefix, anything else is a plain number.
QString formatCost(double value, const std::string& unit);
QString formatShape(const Shape& shape); ///< "8×2048×4096"; "scalar"
QString text(std::string_view utf8);     ///< UTF-8 to QString

/// The last part of a path-like op name: "model.layers.0.mlp.down_proj" -> "down_proj".
QString shortName(std::string_view name);
OpFamily familyOf(OpKind kind);
/// "AR", "AG", "RS", "A2A".
QString shortName(CollectiveKind kind);

} // namespace shardlens
