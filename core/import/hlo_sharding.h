// SPDX-License-Identifier: Apache-2.0
// Shardings as XLA writes them (HloSharding), and the mesh they agree on. HLO names no mesh axes:
// a tile assignment or a replica group only says which device numbers belong together. The mesh is
// the coarsest one on which every annotation of the module is whole axes; where there is none, the
// annotations are counted and left aside.
// Form and meaning: xla/hlo/ir/hlo_sharding.h, tile_assignment.h; openxla.org/xla/sharding.
#pragma once

#include "core/import/hlo_attributes.h"
#include "core/model/partition.h"

#include <map>
#include <set>
#include <string_view>

namespace shardlens::hlo {

/// A step through device numbers: `size` devices `stride` apart.
struct DeviceRange {
    std::int64_t stride = 1, size = 1;
    friend bool operator==(const DeviceRange&, const DeviceRange&) = default;
};

/// One array's sharding: the ranges that cut each dimension, major first.
struct Tiling {
    std::vector<std::vector<DeviceRange>> dims; ///< empty for a replicated value
    std::int64_t devices = 1;
    friend bool operator==(const Tiling&, const Tiling&) = default;
};

/// The text of one leaf's sharding. std::nullopt for what is no layout over all devices: maximal,
/// manual, unknown, and forms that are not understood.
/// `{devices=[2,1,4]<=[8] last_tile_dim_replicate}`, `{replicated}`,
/// `{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}`.
std::optional<Tiling> tilingOf(std::string_view sharding);

/// The shardings of a tuple's leaves, or the one sharding itself: "{{replicated}, {maximal …}}".
std::vector<std::string_view> leafShardings(std::string_view sharding);

/// The ranges of each dimension of a device array, if it is a lattice. A dimension of extent 1 has
/// none.
std::optional<std::vector<std::vector<DeviceRange>>> rangesOf(const DeviceArray& array);

/// Collects ranges and factors the devices into axes.
class MeshFinder {
public:
    void add(const std::vector<DeviceRange>& ranges);
    void atLeast(std::int64_t devices);
    std::int64_t devices() const { return m_devices; }

    /// The mesh, major axis first; empty if the ranges do not fit one mesh. With no range at all
    /// it has one axis.
    std::vector<PartitionAxis> mesh() const;

private:
    std::set<std::int64_t> m_boundaries; ///< strides at which an axis begins or ends
    std::int64_t m_devices = 1;
};

/// Axes of a mesh that make up the ranges, major first. std::nullopt if they are no whole axes.
std::optional<std::vector<std::uint8_t>> axesOf(const std::vector<PartitionAxis>& mesh,
                                                const std::vector<DeviceRange>& ranges);

/// std::nullopt if the ranks differ or the mesh does not fit.
std::optional<TensorSharding> shardingOf(const std::vector<PartitionAxis>& mesh,
                                         const Tiling& tiling, std::size_t rank);

} // namespace shardlens::hlo
