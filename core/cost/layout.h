// SPDX-License-Identifier: Apache-2.0
// Layouts come in pairs: on one mesh axis a tensor's (value, gradient) is sharded/sharded along the
// same dimension, replicated/partial, partial/replicated, or replicated/replicated. A choice gives
// each mesh axis to one factor of an op, or to none; its operands' and results' layouts follow.
// Two axes that shard one dimension do so in mesh order, outer axis major.
#pragma once

#include "core/cluster/cluster.h"
#include "core/model/factor_rule.h"

#include <array>
#include <compare>
#include <string>
#include <vector>

namespace shardlens {

/// One mesh axis of a layout pair: a sharded dimension (>= 0) or one of the codes below.
using AxisLayout = std::int8_t;
inline constexpr AxisLayout kReplicated = -1;        ///< value and gradient replicated
inline constexpr AxisLayout kReplicatedPartial = -2; ///< value replicated, gradient partial
inline constexpr AxisLayout kPartialReplicated = -3; ///< value partial, gradient replicated

/// The layout pair of a tensor on a mesh; entries past the mesh's axes stay kReplicated.
struct Layout {
    std::array<AxisLayout, kMaxMeshAxes> axis{kReplicated, kReplicated, kReplicated, kReplicated};
    auto operator<=>(const Layout&) const = default;
};

/// One side (value or gradient) of one axis: a dimension, or replicated, or partial.
using AxisState = std::int8_t;
inline constexpr AxisState kStateReplicated = -1;
inline constexpr AxisState kStatePartial = -2;
using SideLayout = std::array<AxisState, kMaxMeshAxes>;

SideLayout valueSide(const Layout& layout);
SideLayout gradientSide(const Layout& layout);

/// "[b@dp, -, h@tp] partial(tp)" style, with dimension numbers: "d0@dp d2@tp partial@tp".
std::string toString(const Layout& layout, const Mesh& mesh);
/// Local sizes of a tensor under one side of a layout; uneven dimensions round up.
Shape localShape(const Shape& shape, const SideLayout& side, const Mesh& mesh);
/// Product of the sizes of the axes that shard (1 if none).
double shardCount(const SideLayout& side, const Mesh& mesh);

/// What each mesh axis does to an op: a factor index, or a code.
using AxisChoice = std::int8_t;
inline constexpr AxisChoice kIdle = -1;         ///< the axis does nothing here
inline constexpr AxisChoice kStateSharded = -2; ///< parameters only: value replicated, gradient and
                                                ///< optimizer state sharded (ZeRO-1/2)
struct Choice {
    std::array<AxisChoice, kMaxMeshAxes> axis{kIdle, kIdle, kIdle, kIdle};
    auto operator<=>(const Choice&) const = default;
};

/// Canonical text: "b@dp,n@tp", "state@dp" or "replicated".
std::string toString(const Choice& choice, const FactorRule& rule, const Mesh& mesh);
/// Inverse of toString, order and blanks free. @throws PlanError naming the factors there are
Choice choiceFromString(std::string_view text, const FactorRule& rule, const Mesh& mesh);

Layout operandLayout(const Choice& choice, const FactorRule& rule, std::size_t operand,
                     const Mesh& mesh);
Layout resultLayout(const Choice& choice, const FactorRule& rule, std::size_t result,
                    const Mesh& mesh);

/// How a factor may be cut.
enum class Divisibility : std::uint8_t {
    Even,    ///< the axis sizes divide the factor
    AtLeast, ///< the factor is at least as large (Alpa's rule, shards may be uneven)
};

struct LegalChoices {
    std::vector<Choice> legal;
    struct Illegal {
        Choice choice;
        std::string reason; ///< "heads has 8 elements, tp=16 does not divide it"
    };
    std::vector<Illegal> illegal; ///< single-axis choices that are not allowed, with the reason
};

/// Every legal choice of an op on a mesh, deterministic order (axis 0 slowest, idle first).
/// @param parameterStates also offer state@axis (ZeRO-1/2), for parameters in training
LegalChoices enumerateChoices(const FactorRule& rule, const Mesh& mesh, Divisibility divisibility,
                              bool parameterStates = false);

} // namespace shardlens
