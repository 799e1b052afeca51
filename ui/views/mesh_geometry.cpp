// SPDX-License-Identifier: Apache-2.0
// See mesh_geometry.h.
#include "ui/views/mesh_geometry.h"

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kDeviceWidth = 9, kDeviceHeight = 8;     ///< pixels, to be told apart
constexpr double kReadWidth = 120, kReadHeight = 36;      ///< pixels, with all that is written in
constexpr double kMostWidth = 150, kMostHeight = 44;      ///< pixels, of a device that is laid out
constexpr double kFrameGap = 6, kFrameInset = 3;          ///< pixels, between and inside of nodes
constexpr double kTileGap = 3;                            ///< pixels
constexpr double kTileHeadline = 0.24, kTileInset = 0.05; ///< as shares of a tile

/// A page of equal nodes in rows, each a grid of equal devices.
class MeshPage {
public:
    MeshPage(int devices, int perNode, QSizeF page)
        : m_devices(devices), m_perNode(perNode), m_nodes((devices + perNode - 1) / perNode),
          m_page(page) {
        m_result.devicesPerNode = perNode;
    }

    /// Cells as large as can be, wide ones as slices are written in them.
    MeshGeometry readable(int columns, double headline) {
        m_columns = columns;
        m_headline = m_nodes > 1 ? headline : 0;
        const int rows = (m_perNode + columns - 1) / columns;
        double best = -1;
        QSizeF cell;
        for (int c = 1; c <= m_nodes; ++c) {
            const QSizeF node = nodeSize(c, kFrameGap);
            const QSizeF fit((node.width() - 2 * kFrameInset) / columns,
                             (node.height() - 2 * kFrameInset - m_headline) / rows);
            const double score = std::min(fit.width() * 0.45, fit.height());
            if (score <= best) continue;
            best = score;
            cell = fit;
            m_result.nodeColumns = c;
        }
        cell = cell.boundedTo(QSizeF(kMostWidth, kMostHeight)).expandedTo(QSizeF(2, 2));
        place(QSizeF(columns * cell.width() + 2 * kFrameInset,
                     rows * cell.height() + 2 * kFrameInset + m_headline),
              kFrameGap, kFrameInset);
        return std::move(m_result);
    }

    /// Nodes as square as can be, and their devices too: `columns` is divided for that.
    MeshGeometry tiles(int columns) {
        m_columns = columns;
        for (int c = columns - 1; c >= 1 && c * c >= m_perNode; --c)
            if (columns % c == 0) m_columns = c;
        double best = -1;
        for (int c = 1; c <= m_nodes; ++c) {
            const QSizeF node = nodeSize(c, kTileGap);
            const double score = std::min(node.width(), node.height());
            if (score <= best) continue;
            best = score;
            m_result.nodeColumns = c;
        }
        const QSizeF node = nodeSize(m_result.nodeColumns, kTileGap).expandedTo(QSizeF(2, 2));
        m_headline = m_nodes > 1 ? kTileHeadline * node.height() : 0;
        place(node, kTileGap, kTileInset * std::min(node.width(), node.height()));
        return std::move(m_result);
    }

private:
    QSizeF nodeSize(int columns, double gap) const {
        const int rows = (m_nodes + columns - 1) / columns;
        return {(m_page.width() - gap * (columns + 1)) / columns,
                (m_page.height() - gap * (rows + 1)) / rows};
    }

    void place(QSizeF node, double gap, double inset) {
        const int rows = (m_perNode + m_columns - 1) / m_columns;
        const QSizeF cell((node.width() - 2 * inset) / m_columns,
                          (node.height() - 2 * inset - m_headline) / rows);
        m_result.headline = m_headline;
        const auto spot = [](int index, int columns, QSizeF step) {
            const int row = index / columns;
            return QPointF(index % columns * step.width(), row * step.height());
        };
        const QSizeF step = node + QSizeF(gap, gap);
        for (int n = 0; n < m_nodes; ++n) {
            const QPointF corner = QPointF(gap, gap) + spot(n, m_result.nodeColumns, step);
            m_result.nodes.emplace_back(corner, node);
            const QPointF inside = corner + QPointF(inset, inset + m_headline);
            for (int d = 0; d < m_perNode && n * m_perNode + d < m_devices; ++d)
                m_result.devices.emplace_back(inside + spot(d, m_columns, cell), cell);
        }
    }

    int m_devices, m_perNode, m_nodes, m_columns = 1;
    QSizeF m_page;
    double m_headline = 0;
    MeshGeometry m_result;
};

int rectAt(const std::vector<QRectF>& rects, QPointF point) {
    const auto found =
        std::ranges::find_if(rects, [point](const QRectF& rect) { return rect.contains(point); });
    return found == rects.end() ? -1 : static_cast<int>(found - rects.begin());
}

} // namespace

bool MeshGeometry::showsDevices(double zoom) const {
    return !devices.empty() && devices.front().width() * zoom >= kDeviceWidth &&
           devices.front().height() * zoom >= kDeviceHeight;
}

double MeshGeometry::mostZoom() const {
    if (devices.empty()) return 1;
    const QRectF& cell = devices.front();
    return std::max({1.0, kReadWidth / cell.width(), kReadHeight / cell.height()});
}

std::pair<int, int> MeshGeometry::devicesOf(int node) const {
    const int first = node * devicesPerNode;
    return {first, std::min(first + devicesPerNode, static_cast<int>(devices.size()))};
}

int MeshGeometry::deviceAt(QPointF page) const {
    return rectAt(devices, page);
}

int MeshGeometry::nodeAt(QPointF page) const {
    return rectAt(nodes, page);
}

MeshGeometry placeMesh(int devices, int devicesPerNode, int inner, QSizeF page, double headline) {
    if (devices <= 0) return {};
    const int perNode = std::clamp(devicesPerNode, 1, devices);
    const int columns = std::clamp(inner, 1, perNode);
    MeshGeometry readable = MeshPage(devices, perNode, page).readable(columns, headline);
    if (readable.showsDevices(1)) return readable;
    return MeshPage(devices, perNode, page).tiles(columns);
}

} // namespace shardlens
