// SPDX-License-Identifier: Apache-2.0
// Builds a cgraph of fixed-size boxes with empty labels (so that Graphviz never measures text,
// which is where its library reads freed memory), runs dot with nslimit=1 (the setting that keeps
// its position phase from exploding on long edges), and reads positions and splines back.
#include "core/layout/graphviz_layout.h"

#include "core/error.h"
#include "core/layout/layered/ranking.h"

#include <fmt/format.h>
#include <gvc.h>
#include <locale.h>

#include <algorithm>
#include <memory>
#include <utility>

extern "C" {
// Defined by libgvplugin_dot_layout; no header declares it.
extern gvplugin_library_t gvplugin_dot_layout_LTX_library;
}

namespace shardlens {

namespace {

constexpr double pointsPerInch = 72;

// Graphviz parses sizes with the decimal point of the locale; this thread uses "." meanwhile.
class PlainNumbers {
public:
    PlainNumbers()
        : m_plain(newlocale(LC_NUMERIC_MASK, "C", locale_t{})),
          m_before(m_plain != locale_t{} ? uselocale(m_plain) : locale_t{}) {}
    ~PlainNumbers() {
        if (m_plain == locale_t{}) return;
        uselocale(m_before);
        freelocale(m_plain);
    }
    PlainNumbers(const PlainNumbers&) = delete;
    PlainNumbers& operator=(const PlainNumbers&) = delete;

private:
    locale_t m_plain, m_before;
};

using Context = std::unique_ptr<GVC_t, decltype([](GVC_t* context) { gvFreeContext(context); })>;
using Graph = std::unique_ptr<Agraph_t, decltype([](Agraph_t* graph) { agclose(graph); })>;

// cgraph takes names and values as char* and does not change them.
char* text(const char* value) {
    return const_cast<char*>(value);
}

std::string inches(double points) {
    return fmt::format("{:.6f}", points / pointsPerInch);
}

void setDefault(Agraph_t* graph, int kind, const char* name, const std::string& value) {
    agattr(graph, kind, text(name), text(value.c_str()));
}

Graph makeGraph(const LayoutInput& input) {
    Graph graph(agopen(text("layout"), Agdirected, nullptr));
    if (!graph) throw Error("Graphviz cannot make a graph", "graph layout");
    setDefault(graph.get(), AGRAPH, "nslimit", "1");
    setDefault(graph.get(), AGRAPH, "ranksep", inches(input.rankGap));
    setDefault(graph.get(), AGRAPH, "nodesep", inches(input.nodeGap));
    setDefault(graph.get(), AGNODE, "shape", "box");
    setDefault(graph.get(), AGNODE, "label", "");
    setDefault(graph.get(), AGNODE, "fixedsize", "true");
    setDefault(graph.get(), AGNODE, "width", "1");
    setDefault(graph.get(), AGNODE, "height", "1");
    // Ports in the middle of the lower and the upper border; no room for arrowheads.
    setDefault(graph.get(), AGEDGE, "tailport", "s");
    setDefault(graph.get(), AGEDGE, "headport", "n");
    setDefault(graph.get(), AGEDGE, "dir", "none");
    return graph;
}

std::vector<Agnode_t*> addBoxes(Agraph_t* graph, const LayoutInput& input) {
    std::vector<char> hasLoop(input.boxes.size(), 0);
    for (const auto [from, to] : input.edges)
        if (from == to) hasLoop[from] = 1;
    std::vector<Agnode_t*> nodes;
    for (std::size_t i = 0; i < input.boxes.size(); ++i) {
        Agnode_t* node = agnode(graph, text(fmt::format("{}", i).c_str()), 1);
        const double margin = hasLoop[i] ? 2 * selfLoopMargin(input) : 0;
        agset(node, text("width"), text(inches(input.boxes[i].width + margin).c_str()));
        agset(node, text("height"), text(inches(input.boxes[i].height).c_str()));
        nodes.push_back(node);
    }
    return nodes;
}

// y grows downwards here and upwards there; the bounding box is fitted afterwards.
LayoutPoint fromGraphviz(pointf point) {
    return {point.x, -point.y};
}

LayoutRoute straightRoute(LayoutPoint from, LayoutPoint to) {
    const auto between = [&](double t) {
        return LayoutPoint{from.x + t * (to.x - from.x), from.y + t * (to.y - from.y)};
    };
    return {{from, between(1.0 / 3), between(2.0 / 3), to}};
}

// The edge's curve, or a straight line if dot could not route it. dot rounds to whole points; the
// ends are put exactly on the borders.
LayoutRoute readRoute(Agedge_t* edge, LayoutPoint start, LayoutPoint end) {
    const splines* curves = ED_spl(edge);
    if (curves == nullptr || curves->size != 1 || curves->list[0].size < 4)
        return straightRoute(start, end);
    const bezier& curve = curves->list[0];
    LayoutRoute route;
    for (int i = 0; i < curve.size; ++i) route.points.push_back(fromGraphviz(curve.list[i]));
    route.points.front() = start;
    route.points.back() = end;
    return route;
}

LayoutResult topDownLayout(const LayoutInput& input) {
    const PlainNumbers plainNumbers;
    lt_symlist_t plugins[] = {{"gvplugin_dot_layout_LTX_library", &gvplugin_dot_layout_LTX_library},
                              {nullptr, nullptr}};
    const Context context(gvContextPlugins(plugins, 0));
    agseterr(AGMAX); // a helper process has nobody to tell

    const Graph graph = makeGraph(input);
    const std::vector<Agnode_t*> nodes = addBoxes(graph.get(), input);
    const auto acyclic =
        layered::acyclicEdges(static_cast<std::uint32_t>(nodes.size()), input.edges);
    std::vector<Agedge_t*> edges;
    for (const auto [from, to] : acyclic)
        edges.push_back(from == to ? nullptr
                                   : agedge(graph.get(), nodes[from], nodes[to], nullptr, 1));
    if (gvLayout(context.get(), graph.get(), "dot") != 0)
        throw Error("Graphviz refuses the graph", "graph layout", "use the layered layout");

    LayoutResult result;
    result.engine = "graphviz";
    for (Agnode_t* node : nodes) result.centres.push_back(fromGraphviz(ND_coord(node)));
    for (std::size_t i = 0; i < edges.size(); ++i) {
        const auto [from, to] = acyclic[i];
        LayoutPoint start = result.centres[from], end = result.centres[to];
        if (from == to) {
            result.routes.push_back(selfLoopRoute(input, from, start));
            continue;
        }
        start.y += input.boxes[from].height / 2;
        end.y -= input.boxes[to].height / 2;
        result.routes.push_back(readRoute(edges[i], start, end));
        if (from != input.edges[i].from) std::ranges::reverse(result.routes.back().points);
    }
    gvFreeLayout(context.get(), graph.get());
    fitBounds(input.boxes, result);
    return result;
}

} // namespace

LayoutResult graphvizLayout(const LayoutInput& input) {
    checkLayoutInput(input);
    LayoutResult result =
        input.leftToRight ? transposed(topDownLayout(transposed(input))) : topDownLayout(input);
    checkLayoutResult(input, result);
    return result;
}

} // namespace shardlens
