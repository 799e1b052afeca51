// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules in closed form: what a stage adds to the step and how many micro-batches it
// keeps, so that a search can rank thousands of plans; the event engine (core/schedule) gives the
// figure of the plan that is chosen. Formulas: reference planners.md section 4 and schedules.md
// section 2 (Narayanan 2021 for 1F1B and interleaving, Qi 2024 for ZB-H1).
//   step = critical path (critical_path.h) + max of once_i
// What comes once a step (gradients, optimizer, parameters) begins when all stages have all their
// gradients, as it must where they are clipped by their common norm. A search needs sums over
// stages. With g_i = gate_i - once_i and for any stage k
//   step >= sum of (fill_i - s_i (g_k - g_i)) + g_k + max of once_i
// where s_i = spare for the stages behind it and spareAhead for those before, and the two are equal
// where stages are and wires are not felt: the first micro-batch passes every stage once, and what
// comes behind stage k is passed again while that one waits. By what such a stage is quicker the
// wait is shorter. (In interleaved schedules this is so if the last stage is the slowest, as one
// with the head is. In ZB-H1 nothing is granted, as weight gradients may fill the wait: where its
// stages differ much the sum is above the step, by 0.8 % in the worst case of the tests.)
// Where transfers block (Megatron-LM's send and receive wait for each other, p2p_communication.py)
// the sender's passes are longer by them. A stage's own cut is part of its gate then; what it sends
// back to the stage before it is not, so that sums are a bound but need not be met.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

/// What a stage takes on each of its devices.
struct StagePrice {
    double forward = 0, inputGrad = 0, weightGrad = 0; ///< seconds of one micro-batch
    double recompute = 0;                              ///< the same, before the input gradient
    double send = 0;     ///< to the next stage and back, seconds of one micro-batch and crossing
    double step = 0;     ///< seconds once a step: gradients, optimizer, parameters
    double resident = 0; ///< bytes: parameters, gradients, optimizer state, workspace
    double perMicroBatch = 0; ///< bytes that one micro-batch in flight keeps
    double transient = 0;     ///< bytes on top while recomputing or gathering

    double seconds() const { return forward + inputGrad + weightGrad + recompute; }
};

enum class ScheduleKind : std::uint8_t { GPipe, OneFOneB, Interleaved, ZeroBubbleH1 };

struct ScheduleModel {
    ScheduleKind kind = ScheduleKind::OneFOneB;
    int chunks = 1;        ///< of a device's layers; more than 1 only where interleaved
    bool blocking = false; ///< a device computes nothing while it sends

    /// As core/schedule names it. @throws PlanError with the names there are, and for ZB-H1 with
    /// blocking transfers: they keep its weight gradients from filling the gaps
    static ScheduleModel named(std::string_view name, int chunks = 1, bool blocking = false);
    std::string_view name() const;

    double fill(const StagePrice& price) const;
    double gate(const StagePrice& price, double microBatches) const;
    /// Seconds of a second pass behind the slowest stage, as a share of the gate without what comes
    /// once; and of what is passed again before it.
    double spare(double microBatches) const;
    double spareAhead(double microBatches) const;
    /// Micro-batches in flight on a stage with `behind` stages after it, of `stages` in all.
    double inFlight(int behind, int stages, double microBatches) const;
    /// Stages that may follow one that has room for so many micro-batches; -1 if it does not work.
    int mostBehind(double room, int stages, double microBatches) const;
    /// Whether so many stages and micro-batches are to be had: interleaved schedules need
    /// multiples, ZB-H1 enough to fill the pipeline (else its weight gradients have nothing to
    /// fill).
    bool runs(int stages, int microBatches) const;
    /// Whether memory or order depend on the number of stages, which then must be given.
    bool needsStages() const;

    friend bool operator==(const ScheduleModel&, const ScheduleModel&) = default;

private:
    double ownFill(const StagePrice& price) const;
    double blocked(const StagePrice& price) const;
};

/// "overlapped" or "blocking"
std::string_view transfersText(bool blocking);
/// @throws PlanError for any other text
bool areBlocking(std::string_view transfers);

/// From the last device back to the first, where its next chunk is, seconds: interleaved schedules
/// only. As much crosses there as between the last two.
double wrapSeconds(const std::vector<StagePrice>& prices);

/// Seconds of a step by the closed form. @param prices in pipeline order
double stepSeconds(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                   double microBatches);

} // namespace shardlens
