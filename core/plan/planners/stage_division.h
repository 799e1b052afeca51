// SPDX-License-Identifier: Apache-2.0
// Alpa's inter-operator level: layers are divided into stages and devices given to them, so that
// the step is shortest (Zheng et al., OSDI 2022, section 5, after TeraPipe's dynamic program). It
// knows layers by number and stages by their cost, nothing of graphs. The optimum is exact: the
// longest stage t_max is enumerated among the costs that occur, and for each a dynamic program
// finds the least sum of stages none of which is longer.
//   T = sum of t_i + (B - 1) max t_i
// with B micro-batches and t_i the forward and backward pass of one micro-batch. What crosses from
// stage to stage is free in this model.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace shardlens {

inline constexpr int kAnySuccessors = std::numeric_limits<int>::max();

/// One way to run a stage on a submesh.
struct StageOption {
    double seconds = std::numeric_limits<double>::infinity(); ///< one micro-batch, both passes
    int mostSuccessors = kAnySuccessors; ///< stages that may follow, as of mostSuccessors()
    int config = 0;                      ///< the caller's number for it
};

/// How many stages may follow one that keeps activations of s micro-batches with s - 1 stages after
/// it (1F1B): peak + initial + s * intermediate <= available. -1 if not even s = 1 fits.
/// All in bytes a device; `intermediate` is what one micro-batch keeps for its backward pass.
int mostSuccessors(double available, double peak, double initial, double intermediate);

/// Alpa's filter of candidates: a stage's share of the work is about its share of the devices.
bool sharesMatch(double workShare, double deviceShare, double tolerance);

class StageProblem {
public:
    /// @param submeshDevices how many devices each submesh has
    StageProblem(int layers, int devices, std::vector<int> submeshDevices, double microBatches);

    int layers() const { return m_layers; }
    int devices() const { return m_devices; }
    double microBatches() const { return m_microBatches; }
    const std::vector<int>& submeshDevices() const { return m_submeshDevices; }

    /// Offers layers first … last, both included, on a submesh.
    void offer(int first, int last, int submesh, const StageOption& option);
    const std::vector<StageOption>& options(int first, int last, int submesh) const;

private:
    std::size_t cell(int first, int last, int submesh) const;

    int m_layers, m_devices;
    std::vector<int> m_submeshDevices;
    double m_microBatches;
    std::vector<std::vector<StageOption>> m_options; ///< by cell
};

struct DividedStage {
    int first = 0, last = 0; ///< layers, both included
    int submesh = 0;
    StageOption option;
};

struct StageDivision {
    double seconds = 0; ///< the objective
    double longest = 0; ///< max t_i
    std::vector<DividedStage> stages;
    std::size_t programs = 0; ///< dynamic programs that were run
};

struct DivisionOptions {
    double spacing = 1e-6; ///< seconds: a t_max closer than this to the last one is skipped
    bool earlyStop = true; ///< stop when no longer t_max can be better
};

/// The best division that uses all devices. At most B * spacing above the optimum, which is
/// attained when costs differ by more than the spacing. Nothing if no division is possible. O(P * S
/// * L^2 * M * D) for P values of t_max, S stages (1 where memory binds nowhere), L layers, M
/// submeshes, D devices.
std::optional<StageDivision> divideStages(const StageProblem& problem,
                                          const DivisionOptions& options = {});

/// T of given stages.
double pipelineSeconds(const std::vector<DividedStage>& stages, double microBatches);

} // namespace shardlens
