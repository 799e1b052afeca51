// SPDX-License-Identifier: Apache-2.0
// Made-up values for the sources of a graph (inputs, parameters, constants whose elements are not
// known), so that any graph can be run. Every element depends on the seed, the source and the
// element's place alone.
#pragma once

#include "core/execute/array.h"
#include "core/model/catalogue.h"

#include <map>

namespace shardlens {

using Feeds = std::map<OpId, Array>; ///< for every Input, Parameter and Constant

/// Parameters and inputs in [-1, 1]; constants and variances in [0.5, 1.5], where roots and
/// logarithms exist; integers below the number of rows or classes that they choose from.
Feeds makeFeeds(const Graph& graph, std::uint64_t seed);

/// Rows of the table, or classes, that the integers of an operand choose from; 0 if it is none that
/// chooses.
std::int64_t rowsChosenBy(const OpView& view, std::size_t port);

/// A number in [0, 1) that depends on its arguments alone.
double uniformAt(std::uint64_t seed, std::uint64_t index) noexcept;

} // namespace shardlens
