// SPDX-License-Identifier: Apache-2.0
// What a program says besides its graph: how it is spread over devices, counts, and what a user has
// to know.
#include "core/error.h"
#include "core/import/hlo_sharding.h"
#include "core/import/mlir_builder.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace shardlens::mlir {

namespace {

using Counts = std::map<std::string, std::size_t>;

std::string listed(const Counts& counts) {
    constexpr std::size_t kMost = 12;
    std::vector<std::string> parts;
    for (const auto& [name, count] : counts) {
        if (parts.size() == kMost) {
            parts.push_back(fmt::format("{} more kinds", counts.size() - kMost));
            break;
        }
        parts.push_back(fmt::format("{} ({})", cleaned(name), count));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

void countNames(const std::vector<Operation>& operations, Counts& counts) {
    for (const Operation& op : operations) {
        ++counts[cleaned(op.name.substr(0, 80))];
        for (const Region& region : op.regions)
            for (const Block& block : region.blocks) countNames(block.operations, counts);
    }
}

} // namespace

void Builder::note(TensorId tensor, const SdySharding& sharding, const Operation& at) {
    if (sharding.dims.size() != m_graph.tensor(tensor).spec.shape.size())
        fail(at, fmt::format("a sharding has {} dimensions, its tensor {}", sharding.dims.size(),
                             m_graph.tensor(tensor).spec.shape.size()));
    const auto mesh = m_program.meshes.find(sharding.mesh);
    if (sharding.inPlace || mesh == m_program.meshes.end() || mesh->second.axes.empty()) {
        if (!sharding.inPlace && mesh == m_program.meshes.end())
            fail(at, fmt::format("the mesh {} is not defined", shardlens::inQuotes(sharding.mesh)));
        ++m_otherMeshes;
        return;
    }
    if (m_meshName.empty()) m_meshName = sharding.mesh;
    if (mesh->second.axes != m_program.meshes.at(m_meshName).axes) {
        ++m_otherMeshes;
        return;
    }
    m_shardings.insert_or_assign(tensor, sharding);
}

void Builder::noteMhlo(TensorId tensor, std::string_view sharding) {
    if (sharding.size() >= 2 && sharding.front() == '"' && sharding.back() == '"')
        sharding = sharding.substr(1, sharding.size() - 2);
    m_mhloShardings.insert_or_assign(tensor, std::string(sharding));
}

void Builder::noteCollective(std::int64_t devices) {
    m_collectiveDevices = std::max(m_collectiveDevices, devices);
}

std::vector<std::int64_t> Builder::axesOf(const std::vector<std::int64_t>& group) const {
    std::string name = m_meshName;
    if (name.empty() && m_program.meshes.size() == 1) name = m_program.meshes.begin()->first;
    const auto found = m_program.meshes.find(name);
    if (found == m_program.meshes.end() || m_program.subAxes || group.empty()) return {};
    const SdyMesh& mesh = found->second;
    constexpr std::size_t kMostSteps = 10'000'000;
    if (mesh.deviceIds.size() > kMostSteps / group.size()) return {};
    const auto coordinates = [&](std::int64_t device) {
        if (!mesh.deviceIds.empty()) {
            const auto at = std::ranges::find(mesh.deviceIds, device);
            device = at - mesh.deviceIds.begin();
        }
        std::vector<std::int64_t> result(mesh.axes.size());
        for (std::size_t d = mesh.axes.size(); d-- > 0;) {
            result[d] = device % mesh.axes[d].size;
            device /= mesh.axes[d].size;
        }
        return result;
    };
    const auto first = coordinates(group.front());
    std::set<std::size_t> varying;
    for (const std::int64_t device : group) {
        const auto own = coordinates(device);
        for (std::size_t d = 0; d < own.size(); ++d)
            if (own[d] != first[d]) varying.insert(d);
    }
    const std::int64_t product =
        std::accumulate(varying.begin(), varying.end(), std::int64_t{1},
                        [&](std::int64_t n, std::size_t d) { return n * mesh.axes[d].size; });
    if (product != static_cast<std::int64_t>(group.size())) return {};
    return {varying.begin(), varying.end()};
}

void Builder::addPartition() {
    const bool shardy = !m_shardings.empty() || m_local;
    const std::int64_t said = m_program.partitions * m_program.replicas;
    if (!shardy && m_mhloShardings.empty() && m_collectiveDevices <= 1 && said <= 1) return;
    Partition partition;
    partition.madeBy = shardy ? "Shardy" : "XLA SPMD";
    partition.devices = std::max({said, m_collectiveDevices, std::int64_t{1}});
    partition.local = m_local || (m_collectiveDevices > 1 && m_islands == 0);
    std::string name = m_meshName;
    if (name.empty() && m_program.meshes.size() == 1) name = m_program.meshes.begin()->first;
    if (const auto mesh = m_program.meshes.find(name); mesh != m_program.meshes.end())
        addShardyLayouts(partition, mesh->second);
    else
        addMhloLayouts(partition);
    m_graph.partition = std::move(partition);
}

void Builder::addShardyLayouts(Partition& partition, const SdyMesh& mesh) {
    SdyAxes axes(mesh);
    for (const auto& [tensor, sharding] : m_shardings) axes.add(sharding, m_where);
    for (const auto& [tensor, sharding] : m_shardings) {
        if (auto translated = axes.translate(sharding))
            partition.shardings.emplace(tensor, std::move(*translated));
        else
            ++m_leftAside;
    }
    m_leftAside += m_mhloShardings.size();
    partition.mesh = axes.axes();
    partition.devices =
        std::accumulate(partition.mesh.begin(), partition.mesh.end(), std::int64_t{1},
                        [](std::int64_t n, const PartitionAxis& axis) { return n * axis.size; });
}

/// XLA's strings name no axes: the mesh is the coarsest on which all of them are whole axes.
void Builder::addMhloLayouts(Partition& partition) {
    hlo::MeshFinder finder;
    finder.atLeast(partition.devices);
    std::map<TensorId, hlo::Tiling> tilings;
    for (const auto& [tensor, text] : m_mhloShardings) {
        auto tiling = hlo::tilingOf(text);
        if (!tiling) {
            ++m_leftAside;
            continue;
        }
        finder.atLeast(tiling->devices);
        for (const auto& ranges : tiling->dims) finder.add(ranges);
        tilings.emplace(tensor, std::move(*tiling));
    }
    if (tilings.empty()) return;
    partition.mesh = finder.mesh();
    partition.devices = finder.devices();
    for (const auto& [tensor, tiling] : tilings) {
        auto sharding =
            hlo::shardingOf(partition.mesh, tiling, m_graph.tensor(tensor).spec.shape.size());
        if (sharding)
            partition.shardings.emplace(tensor, std::move(*sharding));
        else
            ++m_leftAside;
    }
}

void Builder::addFacts() {
    Counts counts;
    countNames(m_module.operations, counts);
    constexpr std::size_t kMostNames = 200; // of a file that is not hostile
    for (const auto& [name, count] : counts)
        if (m_graph.facts.size() < kMostNames)
            m_graph.facts[cleaned(name)] = fmt::format("{}", count);
    m_graph.facts["functions"] = fmt::format("{}", m_program.functions.size());
    m_graph.facts["globals"] = fmt::format("{}", m_program.globals.size());
    m_graph.facts["operations"] = fmt::format("{}", m_module.count);
    std::size_t open = 0;
    for (const auto& [tensor, sharding] : m_shardings)
        for (const SdyDimension& dim : sharding.dims) open += dim.open;
    if (open > 0) m_graph.facts["open dimensions of shardings"] = fmt::format("{}", open);
    if (m_trained.empty() || m_arguments.empty()) return;
    m_graph.facts["arguments"] =
        fmt::format("{} read as parameters, {} as inputs", m_trained.size(),
                    m_arguments.size() - m_trained.size());
}

void Builder::addWarnings() {
    const auto say = [&](std::string sentence) { m_graph.warnings.push_back(std::move(sentence)); };
    if (m_program.modules > 1)
        say(fmt::format("The file holds {} modules; the first is shown.", m_program.modules));
    if (!m_opaque.empty())
        say(fmt::format("Not understood, and shown as opaque ops that every device repeats: {}.",
                        listed(m_opaque)));
    if (!m_misfits.empty())
        say(fmt::format("Among them are ops whose attributes or types are not the usual ones: {}.",
                        listed(m_misfits)));
    if (m_islands > 0)
        say(fmt::format("{} part{} written for one device (manual computations) inside a program "
                        "for all: shown as opaque ops.",
                        m_islands, m_islands == 1 ? " is" : "s are"));
    if (m_local && m_freeAxes.empty())
        say("The program is that of one device: shapes are those of its shards, and its "
            "collectives are ops.");
    if (!m_freeAxes.empty())
        say(fmt::format("The program is that of one device, but along {} the compiler may cut "
                        "further: there shapes are whole.",
                        fmt::join(m_freeAxes, ", ")));
    if (m_otherMeshes > 0)
        say(fmt::format("{} sharding{} of another mesh than the first, and left out.",
                        m_otherMeshes, m_otherMeshes == 1 ? " is" : "s are"));
    if (m_leftAside > 0)
        say(fmt::format("{} sharding{} no layout over one mesh, and left out.", m_leftAside,
                        m_leftAside == 1 ? " is" : "s are"));
    if (m_unknownSizes > 0)
        say(fmt::format("{} size{} of results could not be told and taken as 1.", m_unknownSizes,
                        m_unknownSizes == 1 ? "" : "s"));
    std::vector<std::string> guessed;
    for (const std::string& name : m_guessed)
        guessed.push_back(fmt::format("{} = {}", cleaned(name), m_bindings.at(name)));
    if (!guessed.empty())
        say(fmt::format("Sizes that the program leaves open were chosen: {}.",
                        fmt::join(guessed, ", ")));
}

} // namespace shardlens::mlir
