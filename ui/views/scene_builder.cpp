// SPDX-License-Identifier: Apache-2.0
// Builds a GraphScene: first the inside of every opened run (its frame's size follows), then the
// model with runs as single boxes. A frame's inside hangs on ports for tensors that come from or
// go to other blocks, so that each group is laid out alone and stays small.
#include "core/error.h"
#include "core/fold/sections.h"
#include "core/model/catalogue.h"
#include "ui/format.h"
#include "ui/views/graph_scene.h"

#include <QCoreApplication>
#include <QFontMetricsF>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace shardlens {

namespace {

QString tr(const char* source) {
    return QCoreApplication::translate("SceneBuilder", source);
}

constexpr double kMinWidth = 150, kMaxWidth = 340;
constexpr double kFrameMargin = 18, kMinFrameWidth = 480;
constexpr double kRepeatHeight = 7, kLeastStages = 60, kMostStages = 480; // of a block in stages
constexpr std::size_t kMostParallel = 3;       // edges between two boxes before they are one
constexpr double kRankGap = 58, kNodeGap = 34; // room for shapes and collectives on the edges

QPointF pointOf(const LayoutPoint& point) {
    return {point.x, point.y};
}

class SceneBuilder {
public:
    SceneBuilder(GraphScene& scene, const std::stop_token& stop)
        : m_scene(scene), m_graph(*scene.graph), m_folding(*scene.folding),
          m_metrics(scene.options.font), m_stop(stop) {}

    void build();

private:
    struct Group { // one layout call
        std::vector<SceneItem> items;
        std::vector<SceneEdge> edges; ///< from/to index `items`
        LayoutResult layout;
    };

    bool isChip(OpId op) const;
    std::size_t sampleOf(int run) const;
    SceneItem opItem(OpId op, int run) const;
    SceneItem blockItem(int run) const;
    SceneItem portItem(ItemKind kind, TensorId tensor, int run) const;
    Group runGroup(int run) const;
    Group rootGroup(const std::map<int, Group>& opened) const;
    static std::vector<SceneEdge> bundled(const std::vector<SceneEdge>& edges);
    void place(Group& group) const;
    void append(const Group& group, QPointF origin, int parent, std::vector<int>& ids);
    void placeChips(SceneItem& item) const;
    QString sourceOfPort(TensorId tensor, int run) const;

    GraphScene& m_scene;
    const Graph& m_graph;
    const Folding& m_folding;
    BoxMetrics m_metrics;
    std::stop_token m_stop;
};

bool SceneBuilder::isChip(OpId id) const {
    return isDrawnOnReader(m_graph, id);
}

std::size_t SceneBuilder::sampleOf(int run) const {
    return std::min<std::size_t>(1, m_folding.runs[static_cast<std::size_t>(run)].count - 1);
}

SceneItem SceneBuilder::opItem(OpId id, int run) const {
    const Op& op = m_graph.op(id);
    SceneItem item;
    item.kind = ItemKind::Op;
    item.op = id;
    item.run = run;
    item.title = shortName(op.name);
    item.subtitle = text(nameOf(op.kind));
    if (op.kind == OpKind::Elementwise || op.kind == OpKind::Reduce || op.kind == OpKind::Pool)
        item.subtitle = text(op.attributes.text(op.kind == OpKind::Pool ? "mode" : "function",
                                                std::string(nameOf(op.kind))));
    if (m_scene.options.showParameters) {
        for (std::uint32_t port = 0; port < op.inputs.size(); ++port) {
            if (op.inputs[port] == kNoTensor) continue;
            const OpId source = m_graph.tensor(op.inputs[port]).producer;
            if (isChip(source))
                item.chips.push_back({source, port, shortName(m_graph.op(source).name), {}});
        }
    }
    const QFontMetricsF title(m_metrics.title), small(m_metrics.small);
    double width =
        title.horizontalAdvance(item.title) + small.horizontalAdvance(item.subtitle) + 26;
    if (!op.outputs.empty())
        width = std::max(width, m_metrics.stripWidth(m_graph.tensor(op.outputs[0]).spec.shape));
    for (const ParameterChip& chip : item.chips) {
        const Shape& shape = m_graph.tensor(m_graph.op(chip.op).outputs.at(0)).spec.shape;
        width = std::max(width, m_metrics.chipWidth(chip.name, shape));
    }
    width = std::clamp(width + 2 * m_metrics.padding + m_metrics.stripe, kMinWidth, kMaxWidth);
    item.rect = QRectF(0, 0, std::ceil(width), m_metrics.boxHeight(item.chips.size()));
    return item;
}

SceneItem SceneBuilder::blockItem(int run) const {
    const FoldRun& fold = m_folding.runs[static_cast<std::size_t>(run)];
    SceneItem item;
    item.kind = ItemKind::Block;
    item.run = run;
    item.title = m_scene.runNames[static_cast<std::size_t>(run)];
    if (fold.count > 1) item.title += QStringLiteral(" ×%1").arg(fold.count);
    std::size_t shown = 0;
    double parameters = 0;
    for (std::size_t local = 0; local < fold.period; ++local) {
        const OpId op = m_folding.order[fold.position(0, local)];
        if (!isChip(op)) ++shown;
        if (m_graph.op(op).kind == OpKind::Parameter)
            parameters += elementsOf(m_graph.tensor(m_graph.op(op).outputs.at(0)).spec.shape);
    }
    item.subtitle =
        (fold.count > 1 ? tr("%1 ops, %2 parameters each") : tr("%1 ops, %2 parameters"))
            .arg(shown)
            .arg(formatCount(parameters));
    const double width = std::max(QFontMetricsF(m_metrics.title).horizontalAdvance(item.title) + 40,
                                  QFontMetricsF(m_metrics.small).horizontalAdvance(item.subtitle));
    double height = m_metrics.titleHeight + 3 * m_metrics.smallHeight + 4 * m_metrics.padding;
    if (m_scene.options.roomForStages && fold.count > 1) {
        item.stagesTop = height - m_metrics.padding;
        height +=
            std::clamp(kRepeatHeight * static_cast<double>(fold.count), kLeastStages, kMostStages);
    }
    item.rect = QRectF(0, 0, std::clamp(std::ceil(width + 34), 250.0, 420.0), height);
    return item;
}

QString SceneBuilder::sourceOfPort(TensorId tensor, int run) const {
    const OpId producer = m_graph.tensor(tensor).producer;
    if (m_folding.classes[m_folding.classOf[producer]].run == run) return tr("block before");
    return shortName(m_graph.op(producer).name);
}

SceneItem SceneBuilder::portItem(ItemKind kind, TensorId tensor, int run) const {
    SceneItem item;
    item.kind = kind;
    item.tensor = tensor;
    item.op = m_graph.tensor(tensor).producer;
    item.run = run;
    const bool repeats = m_folding.runs[static_cast<std::size_t>(run)].count > 1;
    item.title = kind == ItemKind::PortIn ? tr("from %1").arg(sourceOfPort(tensor, run))
                 : repeats                ? tr("to block after")
                                          : tr("to what follows");
    item.subtitle = formatShape(m_graph.tensor(tensor).spec.shape);
    const QFontMetricsF small(m_metrics.small);
    const double width = small.horizontalAdvance(item.title + item.subtitle) + 34;
    item.rect = QRectF(0, 0, std::clamp(std::ceil(width), 110.0, kMaxWidth),
                       m_metrics.smallHeight + m_metrics.padding);
    return item;
}

SceneBuilder::Group SceneBuilder::runGroup(int run) const {
    const FoldRun& fold = m_folding.runs[static_cast<std::size_t>(run)];
    const std::size_t sample = sampleOf(run);
    Group group;
    std::map<OpId, int> itemOf;
    std::map<TensorId, int> ports, outs;
    std::vector<OpId> inside;
    for (std::size_t local = 0; local < fold.period; ++local) {
        const OpId op = m_folding.order[fold.position(sample, local)];
        inside.push_back(op);
        if (isChip(op)) continue;
        itemOf[op] = static_cast<int>(group.items.size());
        group.items.push_back(opItem(op, run));
    }
    const auto isInside = [&](OpId op) {
        const std::size_t at = m_folding.position[op];
        return at >= fold.position(sample, 0) && at < fold.position(sample, 0) + fold.period;
    };
    const auto port = [&](std::map<TensorId, int>& known, ItemKind kind, TensorId tensor) {
        const auto [at, added] = known.try_emplace(tensor, static_cast<int>(group.items.size()));
        if (added) group.items.push_back(portItem(kind, tensor, run));
        return at->second;
    };
    for (const OpId op : inside) {
        if (!itemOf.contains(op)) continue;
        const auto& inputs = m_graph.op(op).inputs;
        for (std::uint32_t p = 0; p < inputs.size(); ++p) {
            if (inputs[p] == kNoTensor) continue;
            const OpId producer = m_graph.tensor(inputs[p]).producer;
            if (isChip(producer)) continue;
            const int from =
                isInside(producer) ? itemOf.at(producer) : port(ports, ItemKind::PortIn, inputs[p]);
            group.edges.push_back({from, itemOf.at(op), inputs[p], op, p, run, {}, false, {}, {}});
        }
        for (const TensorId tensor : m_graph.op(op).outputs) {
            const auto uses = m_graph.uses(tensor);
            if (std::all_of(uses.begin(), uses.end(), [&](auto use) { return isInside(use.op); }))
                continue;
            const int to = port(outs, ItemKind::PortOut, tensor);
            group.edges.push_back({itemOf.at(op), to, tensor, kNoOp, 0, run, {}, false, {}, {}});
        }
    }
    return group;
}

SceneBuilder::Group SceneBuilder::rootGroup(const std::map<int, Group>& opened) const {
    Group group;
    std::vector<int> itemOf(m_graph.ops().size(), -1);
    std::map<int, int> itemOfRun;
    for (const OpId op : m_folding.order) {
        const int run = m_folding.classes[m_folding.classOf[op]].run;
        if (isChip(op)) continue;
        if (run < 0) {
            itemOf[op] = static_cast<int>(group.items.size());
            group.items.push_back(opItem(op, -1));
            continue;
        }
        const auto [at, added] = itemOfRun.try_emplace(run, static_cast<int>(group.items.size()));
        itemOf[op] = at->second;
        if (!added) continue;
        SceneItem item = blockItem(run);
        if (const auto inner = opened.find(run); inner != opened.end()) {
            item.kind = ItemKind::Frame;
            const LayoutResult& inside = inner->second.layout;
            item.rect = QRectF(0, 0, std::max(inside.width + 2 * kFrameMargin, kMinFrameWidth),
                               inside.height + m_metrics.headerHeight + kFrameMargin);
        }
        group.items.push_back(std::move(item));
    }
    // The same tensor of other repeats of a block would be the same edge.
    std::set<std::tuple<ClassId, std::uint32_t, int>> known;
    for (const OpId op : m_folding.order) {
        if (itemOf[op] < 0) continue;
        const auto& inputs = m_graph.op(op).inputs;
        for (std::uint32_t p = 0; p < inputs.size(); ++p) {
            if (inputs[p] == kNoTensor) continue;
            const Tensor& tensor = m_graph.tensor(inputs[p]);
            const int from = itemOf[tensor.producer];
            if (from < 0 || from == itemOf[op]) continue;
            if (known.emplace(m_folding.classOf[tensor.producer], tensor.producerPort, itemOf[op])
                    .second)
                group.edges.push_back({from, itemOf[op], inputs[p], op, p, -1, {}, false, {}, {}});
        }
    }
    group.edges = bundled(group.edges);
    return group;
}

/// Many edges between the same two boxes are drawn as one.
std::vector<SceneEdge> SceneBuilder::bundled(const std::vector<SceneEdge>& edges) {
    std::map<std::pair<int, int>, std::vector<SceneRead>> reads;
    for (const SceneEdge& edge : edges)
        reads[{edge.from, edge.to}].push_back({edge.tensor, edge.consumer});
    std::vector<SceneEdge> kept;
    for (const SceneEdge& edge : edges) {
        std::vector<SceneRead>& between = reads.at({edge.from, edge.to});
        if (between.empty()) continue; // drawn already, as a part of its bundle
        kept.push_back(edge);
        if (between.size() > kMostParallel) kept.back().bundle = std::exchange(between, {});
    }
    return kept;
}

void SceneBuilder::place(Group& group) const {
    if (m_stop.stop_requested()) throw Cancelled();
    LayoutInput input;
    input.rankGap = kRankGap;
    input.nodeGap = kNodeGap;
    for (const SceneItem& item : group.items)
        input.boxes.push_back({item.rect.width(), item.rect.height()});
    for (const SceneEdge& edge : group.edges)
        input.edges.push_back(
            {static_cast<std::uint32_t>(edge.from), static_cast<std::uint32_t>(edge.to)});
    group.layout = m_scene.options.layout(input, m_stop);
}

void SceneBuilder::placeChips(SceneItem& item) const {
    double y = item.rect.bottom() - m_metrics.padding * 0.75 -
               static_cast<double>(item.chips.size()) * (m_metrics.chipHeight + 2);
    for (ParameterChip& chip : item.chips) {
        chip.rect = QRectF(item.rect.left() + m_metrics.stripe + m_metrics.padding * 0.75, y,
                           item.rect.width() - m_metrics.stripe - m_metrics.padding * 1.5,
                           m_metrics.chipHeight);
        y += m_metrics.chipHeight + 2;
    }
}

void SceneBuilder::append(const Group& group, QPointF origin, int parent, std::vector<int>& ids) {
    for (std::size_t i = 0; i < group.items.size(); ++i) {
        SceneItem item = group.items[i];
        item.parent = parent;
        item.rect.moveCenter(origin + pointOf(group.layout.centres[i]));
        item.rect.moveTopLeft(QPointF(std::round(item.rect.left()), std::round(item.rect.top())));
        placeChips(item);
        ids.push_back(static_cast<int>(m_scene.items.size()));
        if (item.kind == ItemKind::Op) m_scene.itemOfOp[item.op] = ids.back();
        m_scene.items.push_back(std::move(item));
    }
    for (std::size_t e = 0; e < group.edges.size(); ++e) {
        SceneEdge edge = group.edges[e];
        edge.from = ids[static_cast<std::size_t>(edge.from)];
        edge.to = ids[static_cast<std::size_t>(edge.to)];
        const QRectF& from = m_scene.items[static_cast<std::size_t>(edge.from)].rect;
        const QRectF& to = m_scene.items[static_cast<std::size_t>(edge.to)].rect;
        for (const LayoutPoint& point : group.layout.routes[e].points)
            edge.path.push_back(origin + pointOf(point));
        edge.faint = group.layout.routes[e].sideChannel;
        edge.path.front().setY(from.bottom()); // boxes were moved to whole pixels
        edge.path.back().setY(to.top());
        double left = edge.path[0].x(), right = left, top = edge.path[0].y(), bottom = top;
        for (const QPointF& point : edge.path) {
            left = std::min(left, point.x());
            right = std::max(right, point.x());
            top = std::min(top, point.y());
            bottom = std::max(bottom, point.y());
        }
        edge.bounds = QRectF(QPointF(left, top), QPointF(right, bottom)).adjusted(-70, -8, 70, 8);
        const int id = static_cast<int>(m_scene.edges.size());
        m_scene.items[static_cast<std::size_t>(edge.from)].edgesOut.push_back(id);
        m_scene.items[static_cast<std::size_t>(edge.to)].edgesIn.push_back(id);
        m_scene.edges.push_back(std::move(edge));
    }
}

void SceneBuilder::build() {
    for (std::size_t run = 0; run < m_folding.runs.size(); ++run)
        m_scene.runNames.push_back(nameOfRun(m_graph, m_folding, run));
    m_scene.itemOfOp.assign(m_graph.ops().size(), -1);
    std::map<int, Group> opened;
    for (const int run : m_scene.options.openRuns) {
        if (run < 0 || static_cast<std::size_t>(run) >= m_folding.runs.size()) continue;
        Group group = runGroup(run);
        place(group);
        opened.emplace(run, std::move(group));
    }
    Group root = rootGroup(opened);
    place(root);
    std::vector<int> rootIds;
    append(root, {}, -1, rootIds);
    for (const int id : rootIds) {
        const SceneItem frame = m_scene.items[static_cast<std::size_t>(id)];
        if (frame.kind != ItemKind::Frame) continue;
        const Group& group = opened.at(frame.run);
        std::vector<int> ids;
        const double indent = (frame.rect.width() - group.layout.width) / 2;
        append(group, frame.rect.topLeft() + QPointF(indent, m_metrics.headerHeight), id, ids);
    }
    // Ops that have no box of their own: parameters on their reader, the rest on their block.
    for (std::size_t i = 0; i < m_scene.items.size(); ++i) {
        for (const ParameterChip& chip : m_scene.items[i].chips) {
            int& at = m_scene.itemOfOp[chip.op];
            if (at < 0) at = static_cast<int>(i);
        }
        const SceneItem& item = m_scene.items[i];
        if (item.kind != ItemKind::Block && item.kind != ItemKind::Frame) continue;
        const FoldRun& fold = m_folding.runs[static_cast<std::size_t>(item.run)];
        for (std::size_t local = 0; local < fold.period; ++local) {
            const OpId op = m_folding.order[fold.position(sampleOf(item.run), local)];
            if (m_scene.itemOfOp[op] < 0 && item.kind == ItemKind::Block)
                m_scene.itemOfOp[op] = static_cast<int>(i);
        }
    }
    m_scene.bounds = QRectF(0, 0, root.layout.width, root.layout.height);
    for (const SceneItem& item : m_scene.items) m_scene.bounds |= item.rect;
    m_scene.buildIndex();
}

/// "model.layers.0" of "model.layers.0.mlp.up": everything before the first all-digit part or the
/// digits at the end of a part ("layer0"); empty if there is none.
std::string repeatPrefix(std::string_view name) {
    std::size_t begin = 0;
    while (begin < name.size()) {
        std::size_t end = name.find_first_of("./", begin);
        if (end == std::string_view::npos) return {}; // the last part is the op's own
        const std::string_view part = name.substr(begin, end - begin);
        const std::size_t digits = part.find_last_not_of("0123456789");
        if (digits == std::string_view::npos && !part.empty())
            return std::string(name.substr(0, begin == 0 ? 0 : begin - 1));
        if (digits != std::string_view::npos && digits + 1 < part.size())
            return std::string(name.substr(0, begin + digits + 1));
        begin = end + 1;
    }
    return {};
}

} // namespace

QString nameOfRun(const Graph& graph, const Folding& folding, std::size_t run) {
    const FoldRun& fold = folding.runs[run];
    std::map<std::string, std::size_t> votes;
    for (std::size_t local = 0; local < fold.period; ++local)
        ++votes[repeatPrefix(graph.op(folding.order[fold.position(0, local)]).name)];
    const auto winner =
        std::max_element(votes.begin(), votes.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    std::string name = winner == votes.end() ? std::string() : winner->first;
    while (!name.empty() && (name.back() == '.' || name.back() == '/' || name.back() == '_'))
        name.pop_back();
    while (!name.empty() && name.front() == '/') name.erase(0, 1);
    if (!name.empty()) return text(name);
    if (fold.count > 1) return tr("Block");
    std::vector<OpId> shown;
    for (std::size_t at = fold.first; at < fold.end(); ++at)
        if (!isDrawnOnReader(graph, folding.order[at])) shown.push_back(folding.order[at]);
    return tr("%1 … %2").arg(shortName(graph.op(shown.front()).name),
                             shortName(graph.op(shown.back()).name));
}

std::shared_ptr<const GraphScene> buildScene(std::shared_ptr<const Graph> graph,
                                             std::shared_ptr<const Folding> folding,
                                             SceneOptions options, const std::stop_token& stop) {
    auto scene = std::make_shared<GraphScene>();
    scene->graph = std::move(graph);
    scene->folding = std::move(folding);
    scene->options = std::move(options);
    SceneBuilder(*scene, stop).build();
    return scene;
}

} // namespace shardlens
