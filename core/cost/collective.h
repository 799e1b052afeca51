// SPDX-License-Identifier: Apache-2.0
// Collectives: which ones turn one layout into another, and what they cost on an alpha-beta link
// (reference formulas: planners.md section 1).
#pragma once

#include "core/cost/layout.h"

#include <string_view>

namespace shardlens {

enum class CollectiveKind : std::uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll };
std::string_view nameOf(CollectiveKind kind) noexcept; ///< "all-reduce", …

/// One collective over one mesh axis. Local slices are free and not listed.
struct CollectiveStep {
    CollectiveKind kind = CollectiveKind::AllReduce;
    std::uint8_t axis = 0;
    /// Bytes of the tensor over the group: what the ring formulas call n. For all-reduce and
    /// reduce-scatter each rank's input, for all-gather each rank's result, for all-to-all the
    /// bytes of all ranks of the group together.
    double bytes = 0;
    friend bool operator==(const CollectiveStep&, const CollectiveStep&) = default;
};

/// One step of a conversion, local ones included: mesh axis `axis` of the layout goes from one
/// state to another.
struct LayoutMove {
    enum class Kind : std::uint8_t {
        Slice,       ///< replicated -> a dimension: each keeps its part
        MakePartial, ///< replicated -> partial: all but the first keep zeros
        Collective,  ///< what `step` says
    };
    Kind kind = Kind::Collective;
    std::uint8_t axis = 0;
    AxisState from = kStateReplicated, to = kStateReplicated;
    CollectiveStep step;
};

struct ConversionRules {
    bool reduceScatter = true; ///< false: partial -> sharded is an all-reduce and a slice (Alpa)
    bool allToAll = true;      ///< false: gather and slice
    /// Partial sums are reduced before anything else, as by the op that makes them (Alpa), and not
    /// after the free slices that make them smaller.
    bool reduceFirst = false;
};

/// The moves that turn `from` into `to`, deterministic and of least volume for the rule order:
/// slices first, then reduce-scatters, all-to-alls, all-reduces, all-gathers. An outer axis under
/// an inner one of the same dimension cannot be changed alone: the inner one is gathered first.
/// @param bytes of the whole unsharded tensor
std::vector<LayoutMove> planMoves(const SideLayout& from, const SideLayout& to, double bytes,
                                  const Mesh& mesh, const ConversionRules& rules = {});

/// The collectives among the moves.
std::vector<CollectiveStep> planConversion(const SideLayout& from, const SideLayout& to,
                                           double bytes, const Mesh& mesh,
                                           const ConversionRules& rules = {});

// Seconds of ring collectives over k ranks, n bytes as in CollectiveStep, on a link.
double ringAllReduceSeconds(int k, double n, const Link& link);
double ringAllGatherSeconds(int k, double n, const Link& link);
double ringReduceScatterSeconds(int k, double n, const Link& link);
double ringAllToAllSeconds(int k, double n, const Link& link);

} // namespace shardlens
