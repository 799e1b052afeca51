// SPDX-License-Identifier: Apache-2.0
// See stage_pricer.h.
#include "core/plan/planners/stage_pricer.h"

#include "core/error.h"
#include "core/plan/planners/megatron_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens {

namespace {

constexpr double kGatheredUnits = 2; // ZeRO-3 holds one unit whole and gathers the next

int devicesOf(const std::vector<AxisSize>& axes) {
    int product = 1;
    for (const AxisSize& axis : axes) product *= axis.size;
    return product;
}

/// Devices of one node, or whole nodes.
Cluster partOf(Cluster cluster, int devices) {
    if (devices <= cluster.devicesPerNode) {
        cluster.nodes = 1;
        cluster.devicesPerNode = devices;
    } else {
        cluster.nodes = devices / cluster.devicesPerNode;
    }
    return cluster;
}

/// Two devices in a row, over the given link: half an all-gather of two is a point-to-point send.
Mesh pairMesh(const Link& link, bool crosses) {
    Mesh mesh;
    mesh.axes.push_back({"pair", 2, link, crosses});
    return mesh;
}

std::shared_ptr<const ChoiceFilter> filterOf(std::shared_ptr<const StagedModel> model,
                                             const ReplicaKey& key) {
    if (key.layout == InsideLayout::Free) return nullptr;
    return std::make_shared<MegatronLayout>(std::move(model), key.axes,
                                            key.layout == InsideLayout::MegatronSequence);
}

} // namespace

int StageOptionInfo::devices() const {
    return replicas * devicesOf(replica.axes);
}

StagePricer::StagePricer(std::vector<Cluster> pools, SizedModel model)
    : m_pools(std::move(pools)), m_sized(std::move(model)) {
}

const std::vector<StageWeights>& StagePricer::variants() {
    static const std::vector<StageWeights> weights{
        {.memory = 1e-15}, {.memory = 1e-12}, {.memory = 1e-10}};
    return weights;
}

std::shared_ptr<const StagedModel> StagePricer::model(std::int64_t samples) {
    auto& known = m_models[samples];
    if (!known) known = m_sized(samples);
    return known;
}

namespace {

std::string textOf(const ReplicaKey& key) {
    std::string text = fmt::format("{} {} {}", key.pool, key.samples, static_cast<int>(key.layout));
    for (const AxisSize& axis : key.axes) text += fmt::format(" {}={}", axis.name, axis.size);
    return text;
}

} // namespace

StagePricer::SizedMesh& StagePricer::mesh(const ReplicaKey& key) {
    SizedMesh& known = m_meshes[textOf(key)];
    if (!known.prices) {
        const Cluster& pool = m_pools.at(key.pool);
        known.prices = std::make_shared<MeshPrices>(
            *model(key.samples), layMesh(partOf(pool, devicesOf(key.axes)), key.axes),
            rooflineModel(pool), filterOf(model(key.samples), key));
    }
    return known;
}

StagePricer::Replica& StagePricer::replica(const ReplicaKey& key) {
    auto& known = m_replicas[textOf(key) + fmt::format(" {}", key.variant)];
    if (!known)
        known = std::make_unique<Replica>(model(key.samples), m_pools.at(key.pool),
                                          mesh(key).prices, key);
    return *known;
}

const std::vector<UnitFloor>& StagePricer::floors(const ReplicaKey& key) {
    SizedMesh& known = mesh(key);
    if (known.floors.empty()) known.floors = unitFloors(model(key.samples), known.prices);
    return known.floors;
}

StagePricer::Replica::Replica(std::shared_ptr<const StagedModel> model, const Cluster& pool,
                              std::shared_ptr<MeshPrices> prices, const ReplicaKey& key)
    : m_pool(pool), m_devices(devicesOf(key.axes)), m_cost(prices->pricing.cost()),
      m_table(std::move(model), std::move(prices),
              variants().at(static_cast<std::size_t>(key.variant))) {
    if (key.layout == InsideLayout::Free) return;
    for (const AxisSize& axis : key.axes) {
        if (axis.name == "cp" || axis.name == "cp_ep" || axis.name == "ep") m_copies *= axis.size;
        if (axis.name == "cp") m_expertCopies *= axis.size;
    }
}

bool StagePricer::Replica::fits(int replicas) const {
    const int n = replicas * m_devices;
    if (n > m_pool.devices()) return false;
    return n <= m_pool.devicesPerNode ? m_pool.devicesPerNode % n == 0
                                      : n % m_pool.devicesPerNode == 0;
}

const StagePricer::Replica::Between& StagePricer::Replica::between(int copies, int inner) {
    const auto known = std::ranges::find_if(m_between, [&](const Between& lines) {
        return lines.copies == copies && lines.inner == inner;
    });
    if (known != m_between.end()) return *known;
    Between between{copies, inner, {}, {}, {}};
    if (copies > 1) {
        const Mesh mesh =
            layMesh(partOf(m_pool, copies * inner), {{"copies", copies}, {"inner", inner}});
        const auto line = [&](CollectiveKind kind) {
            constexpr double kBytes = 1 << 30;
            const double none = m_cost.collective({kind, 0, 0}, mesh);
            return Line{none, (m_cost.collective({kind, 0, kBytes}, mesh) - none) / kBytes};
        };
        between.scatter = line(CollectiveKind::ReduceScatter);
        between.gather = line(CollectiveKind::AllGather);
        between.reduce = line(CollectiveKind::AllReduce);
    }
    m_between.push_back(between);
    return m_between.back();
}

double StagePricer::Replica::leastStep(double update, double parameters, int replicas) {
    const Between& lines = between(replicas, m_devices);
    const double once = lines.scatter.perByte + lines.gather.perByte;
    return update / replicas + parameters * std::min(once, lines.reduce.perByte);
}

/// Every device sends its share of what crosses, and gets that of the gradient back.
double StagePricer::Replica::sendSeconds(std::size_t last, int replicas) {
    const StageUnits& units = m_table.model().units;
    if (last + 1 >= units.units.size()) return 0;
    const bool inside = 2 * replicas * m_devices <= m_pool.devicesPerNode;
    std::vector<double>& sends = m_sends[inside ? 1 : 0];
    if (sends.empty()) sends.assign(units.units.size(), -1);
    if (sends[last] >= 0) return sends[last];
    const Mesh pair = pairMesh(inside ? m_pool.scaleUp : m_pool.scaleOut, !inside);
    double seconds = 0;
    for (const double bytes : {units.crossingBytes[last + 1], units.gradientBytes[last + 1]})
        if (bytes > 0)
            seconds +=
                m_cost.collective({CollectiveKind::AllGather, 0, 2 * bytes / m_devices}, pair);
    return sends[last] = seconds;
}

StagePricer::Replica::Tied StagePricer::Replica::tied(std::size_t first, std::size_t last) const {
    const StagedModel& model = m_table.model();
    Tied sum;
    for (const TiedParameter& tied : model.units.tied) {
        const auto inside = static_cast<std::size_t>(std::ranges::count_if(
            tied.units, [&](std::size_t u) { return u >= first && u <= last; }));
        if (inside == 0) continue;
        const double bytes =
            bytesOf(model.graph->tensor(model.graph->op(tied.op).outputs[0]).spec) * m_copies /
            m_devices;
        sum.repeated += static_cast<double>(inside - 1) * bytes;
        if (inside < tied.units.size()) sum.across += bytes;
    }
    return sum;
}

/// What it takes that devices hold copies of parameters, ZeRO's shards of them included.
void StagePricer::Replica::addCopies(StagePrice& price, const StageFigures::Held& f, int copies,
                                     int inner, const StagePolicy& policy) {
    const Between& lines = between(copies, inner);
    const double scatter = lines.scatter(f.parameters), gather = lines.gather(f.parameters);
    const double shard = copies;
    price.step += f.optimizer / (policy.zero >= 1 ? shard : 1);
    if (policy.zero == 0) price.step += lines.reduce(f.parameters);
    if (policy.zero == 1) price.step += scatter + gather;
    if (policy.zero >= 2) price.weightGrad += scatter; // gradients are kept in shards only
    if (policy.zero == 2) price.step += gather;
    if (policy.zero == 3) {
        price.forward += gather;
        price.inputGrad += gather;
    }
    price.resident += f.parameters / (policy.zero >= 3 ? shard : 1) +
                      f.gradients / (policy.zero >= 2 ? shard : 1) +
                      f.optimizerState / (policy.zero >= 1 ? shard : 1);
}

/// Tied parameters are held once.
const StagePricer::Replica::Stretch& StagePricer::Replica::stretch(std::size_t first,
                                                                   std::size_t last) {
    if (m_stretch.first == first && m_stretch.last == last) return m_stretch;
    StageFigures f = m_table.figures(first, last);
    const Tied shared = tied(first, last);
    const double once = f.parameters > 0 ? std::max(1 - shared.repeated / f.parameters, 0.5) : 1;
    for (double* figure : {&f.parameters, &f.gradients, &f.optimizerState, &f.optimizer})
        *figure *= once;
    return m_stretch = {first, last, f, m_table.largestUnit(first, last)};
}

StagePrice StagePricer::Replica::price(std::size_t first, std::size_t last, int replicas,
                                       const StagePolicy& policy) {
    const Stretch& here = stretch(first, last);
    const StageFigures& f = here.figures;
    StagePrice price;
    price.forward = f.forward;
    price.inputGrad = f.inputGrad;
    price.weightGrad = f.weightGrad;
    const double cheap = policy.selective ? f.cheapForward : 0;
    price.recompute = policy.fullShare * f.forward + (1 - policy.fullShare) * cheap;
    price.send = sendSeconds(last, replicas);

    price.step = f.sync;
    price.resident = m_cost.workspaceBytes();
    const StageFigures::Held& e = f.experts;
    if (e.parameters > 0) // outermost first: replicas, context, experts, tensor
        addCopies(price, e, replicas * m_expertCopies, m_devices / m_expertCopies, policy);
    addCopies(price,
              {f.parameters - e.parameters, f.gradients - e.gradients,
               f.optimizerState - e.optimizerState, f.optimizer - e.optimizer},
              replicas * m_copies, m_devices / m_copies, policy);
    const double keptAsIs = f.kept - (policy.selective ? f.recomputable : 0);
    price.perMicroBatch =
        policy.fullShare * std::min(f.entry, keptAsIs) + (1 - policy.fullShare) * keptAsIs;
    if (policy.selective || policy.fullShare > 0) price.transient = here.largestUnit;
    if (policy.zero == 3)
        price.transient += kGatheredUnits * f.parameters / static_cast<double>(last - first + 1);
    return price;
}

} // namespace shardlens
