// SPDX-License-Identifier: Apache-2.0
// Values for sources. What an integer means is told by its readers: it is followed through ops that
// only move it to those that use it as an index.
#include "core/execute/feeds.h"

#include "core/model/index_windows.h"

#include <algorithm>

namespace shardlens {

namespace {

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t mixed(std::uint64_t x) noexcept {
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

bool onlyMoves(const Op& op) {
    switch (op.kind) {
    case OpKind::Reshape:
    case OpKind::Transpose:
    case OpKind::Expand:
    case OpKind::Slice:
    case OpKind::Split:
    case OpKind::Concat:
    case OpKind::Tile:
        return true;
    case OpKind::Elementwise: {
        const std::string function = op.attributes.text("function");
        return function == "cast" || function == "identity";
    }
    default:
        return false;
    }
}

/// By tensor: what its integers must stay below, 0 if no reader says so.
std::vector<std::int64_t> indexBounds(const Graph& graph) {
    std::vector<std::int64_t> bounds(graph.tensors().size(), 0);
    const auto tighten = [&](TensorId tensor, std::int64_t bound) {
        if (bound > 0 && (bounds[tensor] == 0 || bound < bounds[tensor])) bounds[tensor] = bound;
    };
    for (OpId id = static_cast<OpId>(graph.ops().size()); id-- > 0;) {
        const Op& op = graph.op(id);
        const OpView view = viewOf(graph, id);
        for (std::size_t port = 0; port < op.inputs.size(); ++port) {
            if (op.inputs[port] == kNoTensor) continue;
            tighten(op.inputs[port], rowsChosenBy(view, port));
            if (onlyMoves(op))
                for (const TensorId out : op.outputs) tighten(op.inputs[port], bounds[out]);
        }
    }
    return bounds;
}

bool isVariance(const Graph& graph, TensorId tensor) {
    constexpr std::uint32_t kVariancePort = 4;
    return std::ranges::any_of(graph.uses(tensor), [&](const Graph::Use& use) {
        return use.port == kVariancePort && graph.op(use.op).kind == OpKind::Norm;
    });
}

Array madeUp(const Graph& graph, OpId id, std::int64_t bound, std::uint64_t seed) {
    const Op& op = graph.op(id);
    const Tensor& tensor = graph.tensor(op.outputs.front());
    Array array = Array::zeros(tensor.spec, tensor.spec.shape);
    const std::uint64_t own = mixed(seed + id);
    if (array.integral) {
        constexpr double kMostlyTrue = 0.9; // a mask hides little
        for (std::size_t i = 0; i < array.size(); ++i) {
            const double u = uniformAt(own, i);
            array.ints[i] = bound > 0 ? static_cast<std::int64_t>(u * static_cast<double>(bound))
                                      : static_cast<std::int64_t>(u < kMostlyTrue);
        }
        return array;
    }
    const bool positive = op.kind == OpKind::Constant || isVariance(graph, op.outputs.front());
    for (std::size_t i = 0; i < array.size(); ++i) {
        const double u = uniformAt(own, i);
        array.reals[i] = positive ? 0.5 + u : 2 * u - 1;
    }
    return array;
}

/// What the numbers of index vectors stay below so that windows lie inside.
std::int64_t windowsIndexed(const OpView& view, std::size_t port) {
    const bool scatters = view.op.kind == OpKind::ScatterWindows;
    const std::size_t windows = scatters ? scatteredArrays(view) : std::size_t{1};
    if (port != windows) return 0;
    const Shape& data = view.inputs[0].shape;
    const Shape& found = (scatters ? view.inputs[windows + 1] : view.outputs[0]).shape;
    const IndexWindows w = indexWindows(view, data, view.inputs[port].shape, found,
                                        view.op.attributes.integers("slice_sizes"));
    std::int64_t bound = 0;
    for (std::size_t d = 0; d < data.size(); ++d) {
        if (w.data[d].component == IndexWindows::kNone) continue;
        const std::int64_t room = data[d] - w.data[d].size + 1;
        bound = bound == 0 ? room : std::min(bound, room);
    }
    return bound;
}

/// A position of a dynamic slice or update.
std::int64_t positionsIn(const OpView& view, std::size_t port) {
    const bool updates = view.op.kind == OpKind::DynamicUpdate;
    const std::size_t first = updates ? 2 : 1;
    if (port < first) return 0;
    const Shape& part = updates ? view.inputs[1].shape : view.outputs[0].shape;
    return view.inputs[0].shape[port - first] - part[port - first] + 1;
}

/// What every index of a gather or scatter by elements or vectors stays below.
std::int64_t entriesIndexed(const OpView& view) {
    const Shape &data = view.inputs[0].shape, &indices = view.inputs[1].shape;
    const Attributes& a = view.op.attributes;
    const std::string mode = a.text("mode", "elements");
    if (view.op.kind == OpKind::GatherND || (view.op.kind == OpKind::Scatter && mode == "nd")) {
        const auto first = data.begin() + a.integer("batch_dims", 0);
        return *std::min_element(first, first + indices.back());
    }
    const auto axis = static_cast<std::size_t>(a.integer("axis", 0));
    return mode == "cache" ? data[axis] - view.inputs[2].shape[axis] + 1 : data[axis];
}

} // namespace

double uniformAt(std::uint64_t seed, std::uint64_t index) noexcept {
    constexpr double kTwoToMinus53 = 1.0 / 9007199254740992.0;
    return static_cast<double>(mixed(seed ^ mixed(index)) >> 11) * kTwoToMinus53;
}

std::int64_t rowsChosenBy(const OpView& view, std::size_t port) {
    switch (view.op.kind) {
    case OpKind::Gather:
        return port == 1
                   ? view.inputs[0]
                         .shape[static_cast<std::size_t>(view.op.attributes.integer("axis", 0))]
                   : 0;
    case OpKind::CrossEntropy:
        return port == 1 ? view.inputs[0].shape.back() : 0;
    case OpKind::GatherElements:
    case OpKind::GatherND:
    case OpKind::Scatter:
        return port == 1 ? entriesIndexed(view) : 0;
    case OpKind::GatherWindows:
    case OpKind::ScatterWindows:
        return windowsIndexed(view, port);
    case OpKind::DynamicSlice:
    case OpKind::DynamicUpdate:
        return positionsIn(view, port);
    case OpKind::OneHot:
        return port == 0 ? view.op.attributes.integer("depth", 0) : 0;
    case OpKind::ReverseSequence: {
        const auto time = static_cast<std::size_t>(view.op.attributes.integer("time_axis", 0));
        return port == 1 ? view.inputs[0].shape[time] + 1 : 0;
    }
    case OpKind::Recurrent:
        return port == 4 ? view.inputs[0].shape[0] + 1 : 0;
    default:
        return 0;
    }
}

Feeds makeFeeds(const Graph& graph, std::uint64_t seed) {
    Feeds feeds;
    const std::vector<std::int64_t> bounds = indexBounds(graph);
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        const Op& op = graph.op(id);
        if (op.kind != OpKind::Input && op.kind != OpKind::Parameter && op.kind != OpKind::Constant)
            continue;
        const Tensor& tensor = graph.tensor(op.outputs.front());
        Array known = Array::zeros(tensor.spec, tensor.spec.shape);
        if (tensor.value && known.integral) {
            known.ints = *tensor.value;
        } else if (tensor.value) {
            std::ranges::transform(*tensor.value, known.reals.begin(),
                                   [](std::int64_t x) { return static_cast<double>(x); });
        } else if (tensor.reals && !known.integral) {
            known.reals = *tensor.reals;
        } else {
            known = madeUp(graph, id, bounds[op.outputs.front()], seed);
        }
        feeds.emplace(id, std::move(known));
    }
    return feeds;
}

} // namespace shardlens
