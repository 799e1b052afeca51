// SPDX-License-Identifier: Apache-2.0
// Queries on a built scene: which item shows an op, what lies in an area. See graph_scene.h.
#include "ui/views/graph_scene.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kCell = 600; // side of a grid cell, scene units

std::uint64_t cellKey(int column, int row) {
    return (std::uint64_t{static_cast<std::uint32_t>(column)} << 32U) |
           static_cast<std::uint32_t>(row);
}

int cellOf(double coordinate) {
    return static_cast<int>(std::floor(coordinate / kCell));
}

} // namespace

int GraphScene::itemOf(OpId op) const {
    if (op >= itemOfOp.size()) return -1;
    const int run = folding->classes[folding->classOf[op]].run;
    if (run < 0) return itemOfOp[op];
    const std::size_t count = folding->runs[static_cast<std::size_t>(run)].count;
    return itemOfOp[inRepeat(op, run, std::min<std::size_t>(1, count - 1))];
}

const ParameterChip* GraphScene::chipOf(OpId op, int item) const {
    if (item < 0) return nullptr;
    const SceneItem& shown = items[static_cast<std::size_t>(item)];
    const auto same = [&](const ParameterChip& chip) {
        return chip.op == op || folding->classOf[chip.op] == folding->classOf[op];
    };
    const auto found = std::find_if(shown.chips.begin(), shown.chips.end(), same);
    return found == shown.chips.end() ? nullptr : &*found;
}

OpId GraphScene::inRepeat(OpId op, int run, std::size_t repeat) const {
    if (run < 0 || op == kNoOp) return op;
    const ClassId id = folding->classOf[op];
    if (folding->classes[id].run != run) return op;
    return folding->member(id, repeat);
}

TensorId GraphScene::tensorInRepeat(const SceneEdge& edge, std::size_t repeat) const {
    if (edge.run < 0) return edge.tensor;
    if (edge.consumer != kNoOp)
        return graph->op(inRepeat(edge.consumer, edge.run, repeat)).inputs.at(edge.port);
    const Tensor& tensor = graph->tensor(edge.tensor);
    return graph->op(inRepeat(tensor.producer, edge.run, repeat)).outputs.at(tensor.producerPort);
}

TensorId GraphScene::tensorInRepeat(const SceneItem& port, std::size_t repeat) const {
    const auto& touching = port.kind == ItemKind::PortIn ? port.edgesOut : port.edgesIn;
    if (touching.empty()) return port.tensor;
    return tensorInRepeat(edges[static_cast<std::size_t>(touching.front())], repeat);
}

void GraphScene::insert(Cells& cells, const QRectF& rect, int id) {
    for (int column = cellOf(rect.left()); column <= cellOf(rect.right()); ++column)
        for (int row = cellOf(rect.top()); row <= cellOf(rect.bottom()); ++row)
            cells[cellKey(column, row)].push_back(id);
}

std::vector<int> GraphScene::query(const Cells& cells, const QRectF& rect) {
    std::vector<int> found;
    for (int column = cellOf(rect.left()); column <= cellOf(rect.right()); ++column) {
        for (int row = cellOf(rect.top()); row <= cellOf(rect.bottom()); ++row) {
            const auto cell = cells.find(cellKey(column, row));
            if (cell != cells.end())
                found.insert(found.end(), cell->second.begin(), cell->second.end());
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

void GraphScene::buildIndex() {
    m_itemCells.clear();
    m_edgeCells.clear();
    for (std::size_t i = 0; i < items.size(); ++i)
        insert(m_itemCells, items[i].rect, static_cast<int>(i));
    for (std::size_t e = 0; e < edges.size(); ++e)
        insert(m_edgeCells, edges[e].bounds, static_cast<int>(e));
}

std::vector<int> GraphScene::itemsIn(const QRectF& area) const {
    std::vector<int> found =
        query(m_itemCells, area & bounds.adjusted(-kCell, -kCell, kCell, kCell));
    std::erase_if(found,
                  [&](int i) { return !items[static_cast<std::size_t>(i)].rect.intersects(area); });
    return found;
}

std::vector<int> GraphScene::edgesIn(const QRectF& area) const {
    std::vector<int> found =
        query(m_edgeCells, area & bounds.adjusted(-kCell, -kCell, kCell, kCell));
    std::erase_if(
        found, [&](int e) { return !edges[static_cast<std::size_t>(e)].bounds.intersects(area); });
    return found;
}

int GraphScene::itemAt(QPointF point) const {
    const QRectF spot(point - QPointF(0.5, 0.5), QSizeF(1, 1));
    const std::vector<int> found = itemsIn(spot);
    // Content is appended after its frame, so the innermost item is the last.
    for (auto i = found.rbegin(); i != found.rend(); ++i)
        if (items[static_cast<std::size_t>(*i)].rect.contains(point)) return *i;
    return -1;
}

BoxMetrics::BoxMetrics(const QFont& base) : title(base), small(base) {
    title.setBold(true);
    small.setPointSizeF(base.pointSizeF() * 0.86);
    titleHeight = std::ceil(QFontMetricsF(title).height());
    smallHeight = std::ceil(QFontMetricsF(small).height());
    headerHeight = titleHeight + smallHeight + 3 * padding;
    chipHeight = smallHeight + 4;
}

QRectF sheetOf(const SceneItem& block) {
    return block.rect.adjusted(0, 0, -8, -6);
}

QRectF stageAreaOf(const SceneItem& box) {
    if (box.kind != ItemKind::Block) return box.rect;
    return sheetOf(box).adjusted(0, box.stagesTop, 0, 0);
}

double BoxMetrics::cellWidth(std::int64_t size) const {
    const QFontMetricsF metrics(small);
    const double least = metrics.horizontalAdvance(QStringLiteral("dp·tp")) * 0.75;
    return std::ceil(std::max(metrics.horizontalAdvance(QString::number(size)), least)) + 8;
}

double BoxMetrics::stripWidth(const Shape& shape) const {
    double width = 0;
    for (const std::int64_t size : shape) width += cellWidth(size) + cellGap;
    const double partial = QFontMetricsF(small).horizontalAdvance(QStringLiteral("Σtp")) + 12;
    return width + partial;
}

double BoxMetrics::boxHeight(std::size_t chips) const {
    return padding + titleHeight + 3 + stripHeight() + padding * 0.75 +
           static_cast<double>(chips) * (chipHeight + 2) + (chips > 0 ? padding * 0.5 : 0);
}

double BoxMetrics::chipWidth(const QString& name, const Shape& shape) const {
    const QFontMetricsF metrics(small);
    constexpr double kSymbol = 17, kGap = 6, kDimension = 12, kLozenge = 26;
    double width = kSymbol + metrics.horizontalAdvance(name) + kGap;
    for (const std::int64_t size : shape)
        width += metrics.horizontalAdvance(QString::number(size)) + kDimension;
    width += metrics.horizontalAdvance(QStringLiteral("/dp·tp"));
    return width + metrics.horizontalAdvance(QStringLiteral("AG tp  99.9 µs")) + kLozenge;
}

} // namespace shardlens
