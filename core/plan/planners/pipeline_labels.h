// SPDX-License-Identifier: Apache-2.0
// The best pipeline whose largest gate, and the largest of what comes once, lie in a narrow
// bracket: stages are placed from the end of the chain on, and among those that cover the same
// units with as many stages only the undominated ones (fill, devices of each kind) are carried on,
// the least bound first.
#pragma once

#include "core/plan/planners/pipeline_paths.h"

#include <tuple>
#include <unordered_map>

namespace shardlens {

class PipelineLabels {
public:
    /// @param paths with prices of the bracket and bounds of the cells
    PipelineLabels(const PipelineProblem& problem, PipelinePaths& paths, const StageCells& cells,
                   const GateBracket& bracket);

    /// Replaces `best` by anything better; what cannot be within the tolerance is dropped.
    void run(PipelineSolution& best, const PipelineSearchOptions& options);
    std::size_t count() const { return m_labels.size(); }

private:
    struct Label {
        double fill = 0;
        DeviceCounts used{};
        int behind = 0; ///< stages that are placed, at the end of the chain
        int unit = 0;   ///< the first of them begins here
        std::int32_t before = -1;
        const StageCandidate* candidate = nullptr;
        bool dominated = false;
        PipelinePaths::Behind kind = PipelinePaths::Slow; ///< of the stages that are placed
    };
    /// Those of about the same bound go by how far they have come, so that pipelines are found
    /// soon.
    struct Entry {
        double level; ///< the bound, rounded down
        int unit;
        double bound;
        std::int32_t label;
        bool operator<(const Entry& other) const {
            return std::tie(level, unit, bound) > std::tie(other.level, other.unit, other.bound);
        }
    };

    void setCandidates();
    bool isSlow(const StageCandidate& candidate) const;
    double fillBehind(PipelinePaths::Behind kind, const StageCandidate& candidate) const;
    double costOf(const Label& label) const;
    void extend(std::int32_t index, double target);
    void insert(const Label& label);
    void open(std::int32_t index, PipelineSolution& best);
    void finish(std::int32_t index, PipelineSolution& best) const;

    const PipelineProblem& m_problem;
    PipelinePaths& m_paths;
    const StageCells& m_cells;
    GateBracket m_bracket;
    double m_step = 0; ///< between levels; 0 = every bound has one
    std::vector<std::vector<StageCandidate>> m_candidates; ///< by list: undominated
    std::vector<Label> m_labels;
    std::vector<Entry> m_open;                                            ///< a heap
    std::unordered_map<std::int64_t, std::vector<std::int32_t>> m_fronts; ///< by behind and unit
};

} // namespace shardlens
