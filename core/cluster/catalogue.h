// SPDX-License-Identifier: Apache-2.0
// The hardware catalogue as read from resources/hardware: devices, links and clusters by name. Each
// figure has a row, a unit and a source of its own, so that what is shown can say where it is from.
#pragma once

#include "core/cluster/cluster.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

struct Catalogue {
    std::map<std::string, Device, std::less<>> devices;
    std::map<std::string, Link, std::less<>> links;
    std::vector<Cluster> clusters; ///< of one node each, in the order of the file
};

/// @throws InputError naming file and line: unknown figure or unit, bad number, figure given twice
///         or missing, cluster of unknown parts
Catalogue parseCatalogue(std::string_view devicesCsv, std::string_view linksCsv,
                         std::string_view clustersCsv);

/// The catalogue that is built into the program.
const Catalogue& builtinCatalogue();

} // namespace shardlens
