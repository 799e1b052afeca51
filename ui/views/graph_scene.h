// SPDX-License-Identifier: Apache-2.0
// What the graph view shows, as plain geometry: the folded model as boxes, opened blocks as frames
// with the ops of one repeat inside, parameters as chips on the op that reads them, tensors as
// edges. Built on a worker from immutable snapshots and then only read. A scene knows nothing of
// plans (graph_overlay.h does), so positions never change on a re-solve, and nothing of which
// repeat of a block is looked at: all repeats of a run share one picture.
#pragma once

#include "core/fold/folding.h"
#include "core/layout/box_layout.h"

#include <QFont>
#include <QPointF>
#include <QRectF>
#include <QString>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <unordered_map>
#include <vector>

namespace shardlens {

/// Places a group, top to bottom; sizes in scene units (pixels at zoom 1). @throws Cancelled, Error
using LayoutFunction = std::function<LayoutResult(const LayoutInput&, const std::stop_token&)>;

enum class ItemKind : std::uint8_t {
    Op,      ///< one op
    Block,   ///< a folded run: "layers ×32"
    Frame,   ///< an opened run; its ops are items with parent = this one
    PortIn,  ///< a tensor that enters the blocks of a frame
    PortOut, ///< a tensor that leaves them
};

/// A parameter or constant drawn on the op that reads it.
struct ParameterChip {
    OpId op = kNoOp;        ///< in the scene's sample repeat
    std::uint32_t port = 0; ///< operand of the reader
    QString name;
    QRectF rect; ///< scene coordinates
};

struct SceneItem {
    ItemKind kind = ItemKind::Op;
    OpId op = kNoOp; ///< Op: the op; ports: producer of the tensor; in the sample repeat
    TensorId tensor = kNoTensor; ///< ports: the tensor, in the sample repeat
    int run = -1;                ///< index into Folding::runs: of Block, Frame and what is inside
    int parent = -1;             ///< item index of the frame around it
    QRectF rect;
    QString title, subtitle;
    double stagesTop = 0; ///< Block: from here down its stages are drawn, from rect.top()
    std::vector<ParameterChip> chips;
    std::vector<int> edgesIn, edgesOut; ///< indices into GraphScene::edges
};

/// A tensor and an op that reads it, both in the sample repeat.
struct SceneRead {
    TensorId tensor = kNoTensor;
    OpId consumer = kNoOp;
};

struct SceneEdge {
    int from = -1, to = -1;      ///< item indices
    TensorId tensor = kNoTensor; ///< in the sample repeat
    OpId consumer = kNoOp;       ///< in the sample repeat; kNoOp into a PortOut
    std::uint32_t port = 0;      ///< operand of the consumer
    int run = -1;                ///< inside this opened run, else -1
    std::vector<QPointF> path;   ///< scene coordinates: cubic Bezier pieces, 1 + 3n points
    bool faint = false;          ///< very long: led around the drawing, shown faintly
    QRectF bounds;
    /// Outside opened runs one edge may stand for several between the same boxes: all of their
    /// reads, the edge's own first. Empty for an edge that stands for itself.
    std::vector<SceneRead> bundle;

    bool carries(TensorId id) const {
        return tensor == id || std::ranges::find(bundle, id, &SceneRead::tensor) != bundle.end();
    }
};

struct SceneOptions {
    std::set<int> openRuns;
    bool showParameters = true;
    bool roomForStages = false; ///< folded runs are as high as they are long
    QFont font;
    LayoutFunction layout;
};

class GraphScene {
public:
    std::shared_ptr<const Graph> graph;
    std::shared_ptr<const Folding> folding;
    SceneOptions options;
    std::vector<SceneItem> items;
    std::vector<SceneEdge> edges;
    QRectF bounds;
    std::vector<QString> runNames; ///< by run: "model.layers"

    /// The item that shows an op: itself, the op that carries it as a chip, or the block around.
    int itemOf(OpId op) const;
    /// The chip of a parameter on that item, or nullptr.
    const ParameterChip* chipOf(OpId op, int item) const;
    /// The same op (or tensor) in another repeat of its run.
    OpId inRepeat(OpId op, int run, std::size_t repeat) const;
    TensorId tensorInRepeat(const SceneEdge& edge, std::size_t repeat) const;
    TensorId tensorInRepeat(const SceneItem& port, std::size_t repeat) const;

    /// Items whose rectangles meet an area, ascending (frames before their content).
    std::vector<int> itemsIn(const QRectF& area) const;
    std::vector<int> edgesIn(const QRectF& area) const;
    /// The innermost item at a point, -1 if none.
    int itemAt(QPointF point) const;

    void buildIndex();
    std::vector<int> itemOfOp; ///< by OpId; -1 where not shown
private:
    using Cells = std::unordered_map<std::uint64_t, std::vector<int>>;
    static void insert(Cells& cells, const QRectF& rect, int id);
    static std::vector<int> query(const Cells& cells, const QRectF& rect);
    Cells m_itemCells, m_edgeCells;
};

/// Metrics shared by the builder and the painter, in scene units.
struct BoxMetrics {
    explicit BoxMetrics(const QFont& base);
    QFont title, small;
    double titleHeight = 0, smallHeight = 0;
    double padding = 8, stripe = 4;
    double cellGap = 2;
    double headerHeight = 0; ///< of a frame
    double chipHeight = 0;
    /// Width of the cell that shows one dimension of a tensor.
    double cellWidth(std::int64_t size) const;
    double stripWidth(const Shape& shape) const;
    double stripHeight() const { return 2 * smallHeight + 3; }
    double boxHeight(std::size_t chips) const;
    /// Room for a parameter's name, its shape with a dimension cut by two axes, and one collective.
    double chipWidth(const QString& name, const Shape& shape) const;
};

/// The front sheet of the stack that a folded run is drawn as; and the part of it, or of a frame,
/// that its blocks divide equally when stages are shown.
QRectF sheetOf(const SceneItem& block);
QRectF stageAreaOf(const SceneItem& box);

/// Name for the blocks of a run, from what the names of its ops have in common.
QString nameOfRun(const Graph& graph, const Folding& folding, std::size_t run);

/// Builds a scene. Runs on a worker. @throws Cancelled, Error
std::shared_ptr<const GraphScene> buildScene(std::shared_ptr<const Graph> graph,
                                             std::shared_ptr<const Folding> folding,
                                             SceneOptions options, const std::stop_token& stop);

} // namespace shardlens
