// SPDX-License-Identifier: Apache-2.0
// See timeline_colours.h.
#include "ui/views/timeline_colours.h"

#include <QCoreApplication>
#include <QPaintEngine>
#include <QPainter>

#include <algorithm>
#include <array>

namespace shardlens {

namespace {

using namespace schedule;

constexpr std::uint32_t kFewStages = 8; ///< as many as there are categories

/// Which category a pass is drawn in.
std::size_t passCategory(Pass pass) {
    switch (pass) {
    case Pass::Forward:
        return 0;
    case Pass::ForwardNoGrad:
        return 4;
    case Pass::Backward:
        return 1;
    case Pass::InputGrad:
        return 1;
    case Pass::WeightGrad:
        return 2;
    case Pass::Recompute:
        return 3;
    case Pass::Embed:
    case Pass::EmbedGrad:
        return 6;
    case Pass::Send:
        return 4;
    case Pass::SendGrad:
        return 6;
    case Pass::AllReduce:
        return 5;
    case Pass::Update:
    case Pass::Barrier:
        return 7;
    }
    return 7;
}

/// Yellow on paper and violet on black are hard to see: as much of the text's colour as it takes.
QColor standingOut(const Palette& palette, QColor colour) {
    constexpr double kLeastContrast = 1.5;
    for (int step = 0; step < 10 && Palette::contrast(colour, palette.canvas) < kLeastContrast;
         ++step) {
        colour = Palette::mix(colour, palette.text, 0.08);
    }
    return colour;
}

QColor tinged(const Palette& palette, const QColor& colour, Pass pass) {
    switch (pass) {
    case Pass::Backward:
    case Pass::InputGrad:
    case Pass::EmbedGrad:
    case Pass::SendGrad:
        return Palette::mix(colour, palette.text, 0.24);
    case Pass::WeightGrad:
        return Palette::mix(colour, palette.canvas, 0.42);
    default:
        return colour;
    }
}

QColor shaded(const Palette& palette, const QColor& colour, Pass pass) {
    return standingOut(palette, tinged(palette, colour, pass));
}

QColor ofMicroBatch(const Palette& palette, std::uint32_t microBatch, const Program& program) {
    return palette.scale(static_cast<double>(microBatch) / std::max(1u, program.microBatches - 1));
}

std::uint32_t chunksOf(const Program& program) {
    return std::max(1u, program.stages / std::max(1u, program.devices));
}

std::array<bool, kPasses> passesOf(const Program& program) {
    std::array<bool, kPasses> seen{};
    for (const Task& task : program.tasks) seen[static_cast<std::size_t>(task.pass)] = true;
    seen[static_cast<std::size_t>(Pass::Barrier)] = false;
    return seen;
}

void addNumbers(std::vector<TimelineKey>& keys, const QString& what, const Palette& palette,
                std::uint32_t count) {
    if (count <= kFewStages) {
        for (std::uint32_t i = 0; i < count; ++i) {
            keys.push_back({QStringLiteral("%1 %2").arg(what).arg(i),
                            standingOut(palette, palette.category(i))});
        }
        return;
    }
    for (const std::uint32_t i : {0u, count / 2, count - 1}) {
        keys.push_back({QStringLiteral("%1 %2").arg(what).arg(i),
                        standingOut(palette, palette.numbered(i, count))});
    }
}

/// How passes differ where bars are coloured by something else.
void addTinges(std::vector<TimelineKey>& keys, const Palette& palette, const Program& program) {
    const auto seen = passesOf(program);
    for (const Pass pass : {Pass::Forward, Pass::Backward, Pass::InputGrad, Pass::WeightGrad}) {
        if (!seen[static_cast<std::size_t>(pass)]) continue;
        keys.push_back({passName(pass), shaded(palette, palette.category(7), pass)});
    }
    for (const Pass pass : {Pass::AllReduce, Pass::Update}) {
        if (!seen[static_cast<std::size_t>(pass)]) continue;
        keys.push_back(
            {passName(pass), standingOut(palette, palette.category(passCategory(pass)))});
    }
}

} // namespace

QString timelineText(const char* source) {
    return QCoreApplication::translate("Timeline", source);
}

QColor barColour(const Palette& palette, TimelineColour mode, const Task& task,
                 const Program& program) {
    // These belong to no micro-batch.
    if (task.pass == Pass::AllReduce || task.pass == Pass::Update) mode = TimelineColour::Pass;
    switch (mode) {
    case TimelineColour::Pass:
        return standingOut(palette, palette.category(passCategory(task.pass)));
    case TimelineColour::Stage:
        return shaded(palette, palette.numbered(task.stage, program.stages), task.pass);
    case TimelineColour::MicroBatch:
        return shaded(palette, ofMicroBatch(palette, task.microBatch, program), task.pass);
    case TimelineColour::Chunk:
        return shaded(palette, palette.numbered(task.chunk, std::max(2u, chunksOf(program))),
                      task.pass);
    }
    return palette.border;
}

QColor causeColour(const Palette& palette, Cause cause) {
    constexpr std::array<std::size_t, kCauses> kCategories = {4, 7, 1, 5, 6, 3, 2};
    return palette.category(kCategories[static_cast<std::size_t>(cause)]);
}

QColor causeTint(const Palette& palette, Cause cause) {
    return Palette::mix(palette.canvas, causeColour(palette, cause), 0.16);
}

Qt::BrushStyle causeHatch(Cause cause) {
    constexpr std::array<Qt::BrushStyle, kCauses> kHatches = {
        Qt::BDiagPattern, Qt::FDiagPattern,     Qt::Dense6Pattern, Qt::HorPattern,
        Qt::VerPattern,   Qt::DiagCrossPattern, Qt::CrossPattern};
    return kHatches[static_cast<std::size_t>(cause)];
}

QString causeName(Cause cause) {
    constexpr std::array<const char*, kCauses> kNames = {
        QT_TRANSLATE_NOOP("Timeline", "fill"),
        QT_TRANSLATE_NOOP("Timeline", "drain"),
        QT_TRANSLATE_NOOP("Timeline", "dependency"),
        QT_TRANSLATE_NOOP("Timeline", "exposed communication"),
        QT_TRANSLATE_NOOP("Timeline", "imbalance"),
        QT_TRANSLATE_NOOP("Timeline", "memory wait"),
        QT_TRANSLATE_NOOP("Timeline", "synchronisation")};
    return timelineText(kNames[static_cast<std::size_t>(cause)]);
}

QString passName(Pass pass) {
    constexpr std::array<const char*, kPasses> kNames = {
        QT_TRANSLATE_NOOP("Timeline", "forward"),
        QT_TRANSLATE_NOOP("Timeline", "forward without gradient"),
        QT_TRANSLATE_NOOP("Timeline", "backward"),
        QT_TRANSLATE_NOOP("Timeline", "input gradient"),
        QT_TRANSLATE_NOOP("Timeline", "weight gradient"),
        QT_TRANSLATE_NOOP("Timeline", "recomputation"),
        QT_TRANSLATE_NOOP("Timeline", "shared layer"),
        QT_TRANSLATE_NOOP("Timeline", "shared layer, backward"),
        QT_TRANSLATE_NOOP("Timeline", "send activations"),
        QT_TRANSLATE_NOOP("Timeline", "send gradients"),
        QT_TRANSLATE_NOOP("Timeline", "all-reduce"),
        QT_TRANSLATE_NOOP("Timeline", "update"),
        QT_TRANSLATE_NOOP("Timeline", "barrier")};
    return timelineText(kNames[static_cast<std::size_t>(pass)]);
}

void fillHatched(QPainter& painter, const QRectF& area, const QColor& colour,
                 Qt::BrushStyle hatch) {
    if (painter.paintEngine()->type() != QPaintEngine::SVG) {
        painter.fillRect(area, QBrush(colour, hatch));
        return;
    }
    constexpr double kStep = 7;
    painter.save();
    painter.setClipRect(area, Qt::IntersectClip);
    painter.setPen(QPen(colour, 1));
    const bool falls = hatch == Qt::FDiagPattern || hatch == Qt::DiagCrossPattern;
    const bool rises = hatch == Qt::BDiagPattern || hatch == Qt::DiagCrossPattern;
    const bool level = hatch == Qt::HorPattern || hatch == Qt::CrossPattern;
    const bool upright = hatch == Qt::VerPattern || hatch == Qt::CrossPattern;
    const double height = area.height();
    for (double x = area.left() - height; x < area.right(); x += kStep) {
        const QPointF top(x, area.top()), bottom(x, area.bottom());
        if (falls) painter.drawLine(top, bottom + QPointF(height, 0));
        if (rises) painter.drawLine(bottom, top + QPointF(height, 0));
        if (upright) painter.drawLine(top, bottom);
    }
    for (double y = area.top(); level && y < area.bottom(); y += kStep) {
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    }
    if (hatch == Qt::Dense6Pattern) { // dots: a veil
        QColor veil = colour;
        veil.setAlphaF(0.35F);
        painter.fillRect(area, veil);
    }
    painter.restore();
}

std::vector<TimelineKey> timelineKeys(const Palette& palette, TimelineColour mode,
                                      const Program& program, const Account& account) {
    std::vector<TimelineKey> keys;
    switch (mode) {
    case TimelineColour::Pass: {
        const auto seen = passesOf(program);
        for (std::size_t p = 0; p < kPasses; ++p) {
            if (!seen[p]) continue;
            const auto pass = static_cast<Pass>(p);
            keys.push_back({QStringLiteral("%1 %2").arg(
                                QString::fromLatin1(passText(pass).data(),
                                                    static_cast<qsizetype>(passText(pass).size())),
                                passName(pass)),
                            standingOut(palette, palette.category(passCategory(pass)))});
        }
        break;
    }
    case TimelineColour::Stage:
        addNumbers(keys, timelineText("stage"), palette, program.stages);
        break;
    case TimelineColour::MicroBatch:
        for (const std::uint32_t i :
             {0u, program.microBatches / 2, std::max(1u, program.microBatches) - 1}) {
            keys.push_back(
                {timelineText("micro-batch %1").arg(i),
                 palette.scale(static_cast<double>(i) / std::max(1u, program.microBatches - 1))});
        }
        break;
    case TimelineColour::Chunk:
        addNumbers(keys, timelineText("chunk"), palette, std::max(2u, chunksOf(program)));
        break;
    }
    if (mode != TimelineColour::Pass) addTinges(keys, palette, program);
    for (std::size_t c = 0; c < kCauses; ++c) {
        const bool occurs = std::ranges::any_of(
            account.devices, [c](const DeviceUse& use) { return use.idle[c] > 0; });
        const auto cause = static_cast<Cause>(c);
        if (occurs) {
            keys.push_back({timelineText("idle: %1").arg(causeName(cause)),
                            causeColour(palette, cause), causeHatch(cause)});
        }
    }
    return keys;
}

} // namespace shardlens
