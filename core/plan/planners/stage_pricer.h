// SPDX-License-Identifier: Apache-2.0
// Prices a stretch of a model as a pipeline stage: on which devices, as how many replicas of which
// mesh, with which micro-batch, ZeRO stage and recomputation. The work of one replica comes from a
// StageTable; replicas add the synchronisation of gradients, ZeRO the traffic of its stage, the cut
// the traffic to the next stage.
#pragma once

#include "core/plan/planners/stage_floors.h"

#include <array>
#include <functional>

namespace shardlens {

/// How a stage holds parameters and activations.
struct StagePolicy {
    int zero = 1;           ///< ZeRO stage over the replicas, 0 … 3
    bool selective = false; ///< memory-bound ops are recomputed
    double fullShare = 0;   ///< share of the units that are recomputed as a whole
    friend bool operator==(const StagePolicy&, const StagePolicy&) = default;
};

/// Who chooses inside the mesh.
enum class InsideLayout : std::uint8_t {
    Free,             ///< all legal choices
    Megatron,         ///< megatron_layout.h, on axes named tp, cp, ep
    MegatronSequence, ///< the same with sequence parallelism
};

/// The devices of one replica: one pool of the cluster, a mesh, samples a micro-batch.
struct ReplicaKey {
    std::uint8_t pool = 0;
    std::vector<AxisSize> axes;
    std::int64_t samples = 1; ///< of all data-parallel ranks inside the mesh together
    int variant = 0;          ///< which weights choose inside the mesh, see StagePricer::variants
    InsideLayout layout = InsideLayout::Free;
};

struct StageOptionInfo {
    ReplicaKey replica;
    int replicas = 1;
    int devices() const;
};

/// Sizes the model for a number of samples. May throw InputError where that is not possible.
using SizedModel = std::function<std::shared_ptr<const StagedModel>(std::int64_t samples)>;

class StagePricer {
public:
    /// @param pools one cluster for each kind of device
    StagePricer(std::vector<Cluster> pools, SizedModel model);

    const std::vector<Cluster>& pools() const { return m_pools; }
    std::shared_ptr<const StagedModel> model(std::int64_t samples);

    /// From quickest to leanest.
    static const std::vector<StageWeights>& variants();

    /// One replica of a stage, kept. @throws PlanError, InputError
    class Replica {
    public:
        Replica(std::shared_ptr<const StagedModel> model, const Cluster& pool,
                std::shared_ptr<MeshPrices> prices, const ReplicaKey& key);

        StagePrice price(std::size_t first, std::size_t last, int replicas,
                         const StagePolicy& policy);
        /// No policy has fewer seconds a step. @param update, parameters as of UnitFloor
        double leastStep(double update, double parameters, int replicas);
        const StagedModel& model() const { return m_table.model(); }
        const Cluster& pool() const { return m_pool; }
        StageTable& table() { return m_table; }
        int devices() const { return m_devices; }
        /// Whether so many replicas can lie on whole nodes, or inside one.
        bool fits(int replicas) const;

    private:
        /// A ring's time is a line in its bytes.
        struct Line {
            double latency = 0, perByte = 0;
            double operator()(double bytes) const { return latency + bytes * perByte; }
        };
        struct Between {
            int copies = 1, inner = 1;
            Line scatter, gather, reduce;
        };
        /// Collectives between devices that are `inner` apart.
        const Between& between(int copies, int inner);
        void addCopies(StagePrice& price, const StageFigures::Held& held, int copies, int inner,
                       const StagePolicy& policy);
        double sendSeconds(std::size_t last, int replicas);
        /// Parameters that several units have a copy of, bytes a device: more than once in the
        /// stretch, and also outside of it.
        struct Tied {
            double repeated = 0, across = 0;
        };
        Tied tied(std::size_t first, std::size_t last) const;
        /// What all policies of a stage share; the last one is kept.
        struct Stretch {
            std::size_t first = 1, last = 0;
            StageFigures figures;
            double largestUnit = 0;
        };
        const Stretch& stretch(std::size_t first, std::size_t last);

        Cluster m_pool;
        int m_devices = 1;
        int m_copies = 1;        ///< devices of a replica that hold the same parameters
        int m_expertCopies = 1;  ///< the same for those of experts
        const CostModel& m_cost; ///< of m_table's prices
        StageTable m_table;
        std::vector<Between> m_between;
        Stretch m_stretch;
        std::array<std::vector<double>, 2> m_sends; ///< [inside a node][last unit], -1 unknown
    };
    Replica& replica(const ReplicaKey& key);
    /// What the units take at least in such replicas, by kind. @param key its variant is no matter
    const std::vector<UnitFloor>& floors(const ReplicaKey& key);

private:
    /// What all variants of a replica share.
    struct SizedMesh {
        std::shared_ptr<MeshPrices> prices;
        std::vector<UnitFloor> floors;
    };
    SizedMesh& mesh(const ReplicaKey& key);

    std::vector<Cluster> m_pools;
    SizedModel m_sized;
    std::map<std::int64_t, std::shared_ptr<const StagedModel>> m_models;
    std::map<std::string, SizedMesh> m_meshes;
    std::map<std::string, std::unique_ptr<Replica>> m_replicas;
};

} // namespace shardlens
