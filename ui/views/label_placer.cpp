// SPDX-License-Identifier: Apache-2.0
// Places the labels of edges: greedy, in edge order, over a few candidate points of each curve.
// Collectives always get a place (the one with the least cover); a shape is dropped where there is
// no free room, because the box it comes from shows it anyway.
#include "ui/format.h"
#include "ui/views/graph_overlay.h"

#include <QFontMetricsF>

#include <algorithm>
#include <limits>

namespace shardlens {

namespace {

class LabelPlacer {
public:
    explicit LabelPlacer(GraphOverlay& overlay)
        : m_overlay(overlay), m_scene(*overlay.scene), m_metrics(overlay.scene->options.font),
          m_small(m_metrics.small) {}
    void place();

private:
    QSizeF lozengeBlock(const EdgeMark& mark) const;
    double shapeWidth(const TensorMark& mark) const;
    double coverAt(const QRectF& rect) const;
    void placeEdge(const SceneEdge& edge, EdgeMark& mark);
    void take(const QRectF& rect) { m_taken.push_back(rect); }

    GraphOverlay& m_overlay;
    const GraphScene& m_scene;
    BoxMetrics m_metrics;
    QFontMetricsF m_small;
    std::vector<QRectF> m_taken;
    std::unordered_map<std::int64_t, std::vector<std::size_t>> m_rows; ///< taken, by height band
};

constexpr double kGap = 3;

double lozengeWidth(const Lozenge& lozenge, const GraphOverlay& overlay,
                    const QFontMetricsF& small) {
    return std::ceil(small.horizontalAdvance(lozengeText(lozenge, overlay))) + 20;
}

QSizeF LabelPlacer::lozengeBlock(const EdgeMark& mark) const {
    if (mark.collectives.empty()) return {0, 0};
    double width = 0;
    for (const Lozenge& lozenge : mark.collectives)
        width = std::max(width, lozengeWidth(lozenge, m_overlay, m_small));
    const auto rows = std::min<std::size_t>(mark.collectives.size(), 2);
    const std::size_t columns = (mark.collectives.size() + rows - 1) / rows;
    return {static_cast<double>(columns) * (width + kGap) - kGap,
            static_cast<double>(rows) * (m_metrics.smallHeight + 2 + kGap) - kGap};
}

double LabelPlacer::shapeWidth(const TensorMark& mark) const {
    double width = 4;
    for (const DimMark& dim : mark.dims) {
        QString dimText = QString::number(dim.global);
        for (const std::uint8_t axis : dim.axes)
            dimText += QLatin1Char('/') +
                       (axis < m_overlay.axisNames.size() ? m_overlay.axisNames[axis] : QString());
        width += m_small.horizontalAdvance(dimText) + (dim.axes.empty() ? 0 : 8);
    }
    if (mark.dims.size() > 1)
        width += static_cast<double>(mark.dims.size() - 1) *
                 m_small.horizontalAdvance(QStringLiteral(" × "));
    for (const std::uint8_t axis : mark.partial)
        width += m_small.horizontalAdvance(
                     QStringLiteral("  Σ") +
                     (axis < m_overlay.axisNames.size() ? m_overlay.axisNames[axis] : QString())) +
                 8;
    return std::ceil(width);
}

double LabelPlacer::coverAt(const QRectF& rect) const {
    const auto area = [](const QRectF& part) { return part.width() * part.height(); };
    double cover = 0;
    for (const int id : m_scene.itemsIn(rect)) {
        const SceneItem& item = m_scene.items[static_cast<std::size_t>(id)];
        if (item.kind == ItemKind::Frame && item.rect.contains(rect)) {
            // Inside a frame only its header is in the way.
            QRectF header = item.rect;
            header.setHeight(m_metrics.headerHeight);
            cover += area(header & rect);
        } else {
            cover += area(item.rect & rect);
        }
    }
    const auto first = static_cast<std::int64_t>(std::floor(rect.top() / 100));
    const auto last = static_cast<std::int64_t>(std::floor(rect.bottom() / 100));
    for (std::int64_t row = first; row <= last; ++row) {
        const auto found = m_rows.find(row);
        if (found == m_rows.end()) continue;
        for (const std::size_t id : found->second) cover += area(m_taken[id] & rect);
    }
    return cover;
}

void LabelPlacer::placeEdge(const SceneEdge& edge, EdgeMark& mark) {
    const QSizeF lozenges = lozengeBlock(mark);
    QSizeF shape(edge.bundle.empty() ? shapeWidth(mark.consumed)
                                     : m_small.horizontalAdvance(bundleText(edge)) + 4,
                 m_metrics.smallHeight + 2);
    static constexpr double kPlaces[] = {0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78};
    const auto best = [&](const QSizeF& size, double& cover) {
        QRectF found;
        cover = std::numeric_limits<double>::infinity();
        for (const double t : kPlaces) {
            QRectF rect(QPointF(0, 0), size);
            rect.moveCenter(pointOnCurve(edge.path, t));
            const double here = coverAt(rect.adjusted(-2, -1, 2, 1));
            if (here < cover) {
                cover = here;
                found = rect;
            }
            if (cover == 0) break;
        }
        return found;
    };
    const auto keep = [&](const QRectF& rect) {
        for (auto row = static_cast<std::int64_t>(std::floor(rect.top() / 100));
             row <= static_cast<std::int64_t>(std::floor(rect.bottom() / 100)); ++row)
            m_rows[row].push_back(m_taken.size());
        take(rect);
    };
    double cover = 0;
    if (mark.collectives.empty()) {
        const QRectF rect = best(shape, cover);
        if (cover > 0 || edge.faint) return;
        mark.label = rect;
        keep(rect);
        return;
    }
    const QSizeF both(std::max(lozenges.width(), shape.width()),
                      lozenges.height() + kGap + shape.height());
    QRectF block = best(both, cover);
    if (cover == 0) {
        mark.label = QRectF(block.center().x() - shape.width() / 2, block.bottom() - shape.height(),
                            shape.width(), shape.height());
    } else {
        block = best(lozenges, cover);
    }
    keep(block);
    const auto rows = std::min<std::size_t>(mark.collectives.size(), 2);
    const std::size_t columns = (mark.collectives.size() + rows - 1) / rows;
    const double width = (lozenges.width() + kGap) / static_cast<double>(columns) - kGap;
    for (std::size_t i = 0; i < mark.collectives.size(); ++i) {
        const std::size_t place = i / rows;
        const auto column = static_cast<double>(place), row = static_cast<double>(i % rows);
        mark.collectives[i].rect =
            QRectF(block.center().x() - lozenges.width() / 2 + column * (width + kGap),
                   block.top() + row * (m_metrics.smallHeight + 2 + kGap), width,
                   m_metrics.smallHeight + 2);
    }
}

void LabelPlacer::place() {
    // Collectives first: they must find room.
    for (const bool withCollectives : {true, false})
        for (std::size_t e = 0; e < m_scene.edges.size(); ++e)
            if (m_overlay.edges[e].collectives.empty() != withCollectives)
                placeEdge(m_scene.edges[e], m_overlay.edges[e]);
    for (std::size_t i = 0; i < m_scene.items.size(); ++i) {
        const SceneItem& item = m_scene.items[i];
        ItemMark& mark = m_overlay.items[i];
        double right = item.rect.right() - 6;
        for (Lozenge& lozenge : mark.own) {
            const double width = lozengeWidth(lozenge, m_overlay, m_small);
            lozenge.rect = QRectF(right - width, item.rect.top() - m_metrics.smallHeight * 0.6,
                                  width, m_metrics.smallHeight + 2);
            right -= width + kGap;
        }
        for (std::size_t c = 0; c < mark.chips.size(); ++c) {
            double edge = item.chips[c].rect.right() - 2;
            for (Lozenge& lozenge : mark.chips[c].collectives) {
                const double width = lozengeWidth(lozenge, m_overlay, m_small);
                if (edge - width < item.chips[c].rect.center().x()) break;
                lozenge.rect = QRectF(edge - width, item.chips[c].rect.top() + 1, width,
                                      item.chips[c].rect.height() - 2);
                edge -= width + kGap;
            }
        }
    }
}

} // namespace

QPointF pointOnCurve(const std::vector<QPointF>& curve, double t) {
    const std::size_t pieces = (curve.size() - 1) / 3;
    if (pieces == 0) return (curve.front() + curve.back()) / 2;
    const double place = std::clamp(t, 0.0, 1.0) * static_cast<double>(pieces);
    const auto piece = std::min(static_cast<std::size_t>(place), pieces - 1);
    const double u = place - static_cast<double>(piece), v = 1 - u;
    const QPointF* p = &curve[piece * 3];
    return v * v * v * p[0] + 3 * v * v * u * p[1] + 3 * v * u * u * p[2] + u * u * u * p[3];
}

void placeLabels(GraphOverlay& overlay) {
    LabelPlacer(overlay).place();
}

} // namespace shardlens
