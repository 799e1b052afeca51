// SPDX-License-Identifier: Apache-2.0
// See model_summary.h.
#include "core/plan/model_summary.h"

#include "core/model/catalogue.h"
#include "core/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

namespace shardlens {

namespace {

double forwardFlopsOf(const Graph& graph, OpId id) {
    const OpView view = viewOf(graph, id);
    return forwardWork(view, factorRule(view)).flops;
}

void summariseClasses(const Graph& graph, const Folding& folding, ModelSummary& summary) {
    std::vector<int> numberOf; // of each run among those that repeat, -1: a section
    for (const FoldRun& run : folding.runs) {
        numberOf.push_back(run.count > 1 ? static_cast<int>(summary.runs.size()) : -1);
        if (run.count > 1)
            summary.runs.push_back(
                {run.count, run.period, graph.op(folding.order.at(run.first)).name});
    }
    for (const OpClass& opClass : folding.classes) {
        const Op& op = graph.op(opClass.representative);
        ModelSummary::Class entry;
        entry.name = op.name;
        entry.kind = nameOf(op.kind);
        entry.multiplicity = opClass.multiplicity;
        if (opClass.run >= 0) entry.run = numberOf[static_cast<std::size_t>(opClass.run)];
        if (!op.outputs.empty()) entry.result = graph.tensor(op.outputs.front()).spec;
        entry.forwardFlops = forwardFlopsOf(graph, opClass.representative);
        summary.forwardFlops += entry.forwardFlops * static_cast<double>(entry.multiplicity);
        summary.classes.push_back(std::move(entry));
    }
}

void countOps(const Graph& graph, ModelSummary& summary) {
    for (const Op& op : graph.ops()) {
        ++summary.kinds[std::string(nameOf(op.kind))];
        if (op.kind == OpKind::Opaque) summary.opaque.push_back({op.name, op.type});
    }
}

void describePartition(const Partition& partition, ModelSummary& summary) {
    summary.onOneDevice = partition.local;
    std::vector<std::string> axes;
    for (const PartitionAxis& axis : partition.mesh)
        axes.push_back(fmt::format("{}={}", axis.name, axis.size));
    summary.partition =
        fmt::format("by {} over {} device{}{}{}", partition.madeBy, partition.devices,
                    partition.devices == 1 ? "" : "s",
                    axes.empty() ? std::string() : fmt::format(" ({})", fmt::join(axes, ", ")),
                    partition.local ? "; shapes are those of one" : "; shapes are whole");
}

std::string specText(const TensorSpec& spec) {
    return fmt::format("{}{}", nameOf(spec.dtype), toString(spec.shape));
}

std::string joined(const std::map<std::string, std::int64_t>& values) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : values) parts.push_back(fmt::format("{}={}", name, value));
    return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string runsText(const ModelSummary& summary) {
    if (summary.runs.empty()) return "nothing repeats";
    std::vector<std::string> parts;
    for (const auto& run : summary.runs) {
        parts.push_back(fmt::format("{} × {} ops", run.count, run.period));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string opaqueText(const ModelSummary& summary) {
    if (summary.opaque.empty()) return "none";
    std::map<std::string, std::size_t> types;
    for (const auto& op : summary.opaque) ++types[op.type];
    std::vector<std::string> parts;
    for (const auto& [type, count] : types) parts.push_back(fmt::format("{} × {}", count, type));
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// Kinds, most frequent first.
std::string kindsText(const ModelSummary& summary) {
    std::vector<std::pair<std::string, std::size_t>> kinds(summary.kinds.begin(),
                                                           summary.kinds.end());
    std::ranges::stable_sort(kinds, std::ranges::greater{}, &decltype(kinds)::value_type::second);
    std::vector<std::string> parts;
    for (const auto& [kind, count] : kinds) parts.push_back(fmt::format("{} {}", count, kind));
    return fmt::format("{}", fmt::join(parts, ", "));
}

template <typename Out>
void appendClasses(Out out, const ModelSummary& summary) {
    fmt::format_to(out, "\n{:>6}  {:<12}  {:>10}  {:<28}  {}\n", "times", "kind", "FLOP", "result",
                   "first op");
    for (const auto& entry : summary.classes) {
        fmt::format_to(out, "{:>6}  {:<12}  {:>10}  {:<28}  {}\n", entry.multiplicity, entry.kind,
                       flopsText(entry.forwardFlops), specText(entry.result), entry.name);
    }
}

nlohmann::ordered_json classesJson(const ModelSummary& summary) {
    auto classes = nlohmann::ordered_json::array();
    for (const auto& entry : summary.classes) {
        classes.push_back({{"name", entry.name},
                           {"kind", entry.kind},
                           {"count", entry.multiplicity},
                           {"run", entry.run},
                           {"dtype", nameOf(entry.result.dtype)},
                           {"shape", entry.result.shape},
                           {"forward_flops", entry.forwardFlops}});
    }
    return classes;
}

} // namespace

ModelSummary summarise(const ModelBundle& bundle) {
    const Graph& graph = *bundle.graph;
    ModelSummary summary;
    summary.name = graph.name;
    summary.format = graph.format;
    summary.bindings = graph.bindings;
    summary.facts = graph.facts;
    summary.warnings = graph.warnings;
    summary.sourceOps = bundle.source->ops().size();
    summary.ops = graph.ops().size();
    summary.parameters = bundle.source->parameterCount();
    for (const Op& op : bundle.source->ops()) {
        if (op.kind == OpKind::Parameter) {
            summary.parameterBytes += bytesOf(bundle.source->tensor(op.outputs.front()).spec);
        }
    }
    summary.trainStep = graph.backwardIncluded;
    if (graph.partition) describePartition(*graph.partition, summary);
    countOps(graph, summary);
    summariseClasses(graph, *bundle.folding, summary);
    return summary;
}

std::string toJson(const ModelSummary& summary) {
    nlohmann::ordered_json json;
    json["name"] = summary.name;
    json["format"] = summary.format;
    json["bindings"] = summary.bindings;
    json["facts"] = summary.facts;
    json["source_ops"] = summary.sourceOps;
    json["ops"] = summary.ops;
    json["kinds"] = summary.kinds;
    json["parameters"] = summary.parameters;
    json["parameter_bytes"] = summary.parameterBytes;
    json["forward_flops"] = summary.forwardFlops;
    json["runs"] = nlohmann::ordered_json::array();
    for (const auto& run : summary.runs) {
        json["runs"].push_back(
            {{"count", run.count}, {"period", run.period}, {"first", run.first}});
    }
    json["classes"] = classesJson(summary);
    json["opaque"] = nlohmann::ordered_json::array();
    for (const auto& op : summary.opaque) {
        json["opaque"].push_back({{"name", op.name}, {"type", op.type}});
    }
    json["warnings"] = summary.warnings;
    // Names come from files and may be any bytes.
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string toText(const ModelSummary& summary) {
    std::string text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{}  ({})\n", summary.name, summary.format);
    fmt::format_to(out, "  parameters     {} ({}), {}\n", countText(summary.parameters),
                   groupedText(summary.parameters), bytesText(summary.parameterBytes));
    fmt::format_to(out, "  bound sizes    {}\n", joined(summary.bindings));
    fmt::format_to(out, "  ops            {}", groupedText(static_cast<double>(summary.ops)));
    if (summary.sourceOps != summary.ops) {
        fmt::format_to(out, " ({} in the file, shape arithmetic removed)",
                       groupedText(static_cast<double>(summary.sourceOps)));
    }
    fmt::format_to(out, "\n  kinds          {}\n", kindsText(summary));
    if (summary.trainStep)
        fmt::format_to(out, "  train step     {}{}\n", flopsText(summary.forwardFlops),
                       summary.onOneDevice ? " on each device" : "");
    else
        fmt::format_to(out, "  forward        {} a batch\n", flopsText(summary.forwardFlops));
    if (!summary.partition.empty()) fmt::format_to(out, "  partition      {}\n", summary.partition);
    fmt::format_to(out, "  classes        {}\n", summary.classes.size());
    fmt::format_to(out, "  repeats        {}\n", runsText(summary));
    fmt::format_to(out, "  opaque ops     {}\n", opaqueText(summary));
    for (const auto& warning : summary.warnings) fmt::format_to(out, "  warning: {}\n", warning);
    appendClasses(out, summary);
    return text;
}

} // namespace shardlens
