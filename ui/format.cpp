// SPDX-License-Identifier: Apache-2.0
// See format.h.
#include "ui/format.h"

#include "core/units.h"

#include <fmt/format.h>

#include <cmath>

namespace shardlens {

namespace {

QString signedText(double value, const QString& absolute) {
    return (value < 0 ? QStringLiteral("−") : QStringLiteral("+")) + absolute;
}

} // namespace

QString text(std::string_view utf8) {
    return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

QString formatTime(double seconds) {
    return text(secondsText(seconds));
}
QString formatBytes(double bytes) {
    return text(bytesText(bytes));
}
QString formatCount(double count) {
    return text(countText(count)).trimmed();
}

QString formatDelta(double seconds) {
    if (std::abs(seconds) < 1e-12) return QStringLiteral("±0");
    return signedText(seconds, formatTime(std::abs(seconds)));
}

QString formatBytesDelta(double bytes) {
    if (std::abs(bytes) < 0.5) return QStringLiteral("±0");
    return signedText(bytes, formatBytes(std::abs(bytes)));
}

QString formatPercent(double fraction) {
    if (!std::isfinite(fraction)) return QStringLiteral("∞");
    if (fraction == 0) return QStringLiteral("0 %");
    return QString::fromStdString(fmt::format("{:.3g} %", fraction * 100));
}

QString formatCost(double value, const std::string& unit) {
    if (unit == "s") return formatTime(value);
    if (!std::isfinite(value)) return QStringLiteral("∞");
    return QString::fromStdString(fmt::format("{:.4g}", value));
}

QString formatShape(const Shape& shape) {
    if (shape.empty()) return QStringLiteral("scalar");
    return QString::fromStdString(fmt::format("{}", fmt::join(shape, "×")));
}

QString shortName(std::string_view name) {
    const std::size_t end = name.find_last_not_of("./");
    if (end == std::string_view::npos) return text(name);
    name = name.substr(0, end + 1);
    const std::size_t cut = name.find_last_of("./");
    std::string_view last = cut == std::string_view::npos ? name : name.substr(cut + 1);
    const bool onlyDigits = last.find_first_not_of("0123456789") == std::string_view::npos;
    if (onlyDigits && cut != std::string_view::npos && cut > 0) { // "mlp.experts.0"
        const std::size_t before = name.find_last_of("./", cut - 1);
        last = before == std::string_view::npos ? name : name.substr(before + 1);
    }
    return text(last);
}

OpFamily familyOf(OpKind kind) {
    switch (kind) {
    case OpKind::Input:
    case OpKind::Parameter:
    case OpKind::Constant:
        return OpFamily::Source;
    case OpKind::MatMul:
    case OpKind::Einsum:
    case OpKind::Conv:
    case OpKind::ConvTranspose:
        return OpFamily::Contraction;
    case OpKind::Attention:
        return OpFamily::Attention;
    case OpKind::Transpose:
    case OpKind::Reshape:
    case OpKind::Expand:
    case OpKind::Concat:
    case OpKind::Split:
    case OpKind::Slice:
    case OpKind::Pad:
    case OpKind::Tile:
        return OpFamily::View;
    case OpKind::Opaque:
        return OpFamily::Opaque;
    default:
        return OpFamily::Vector;
    }
}

QString shortName(CollectiveKind kind) {
    switch (kind) {
    case CollectiveKind::AllReduce:
        return QStringLiteral("AR");
    case CollectiveKind::AllGather:
        return QStringLiteral("AG");
    case CollectiveKind::ReduceScatter:
        return QStringLiteral("RS");
    case CollectiveKind::AllToAll:
        return QStringLiteral("A2A");
    }
    return {};
}

} // namespace shardlens
