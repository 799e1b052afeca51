// SPDX-License-Identifier: Apache-2.0
// Meshes and shardings in the text of Shardy's sdy dialect, as they stand in attributes:
//   <["x"=2, "y"=4]>                              a mesh
//   <@mesh, [{"x"}, {"y":(1)2, ?}p1], replicated={"z"}, unreduced={"w"}>   a sharding
// Grammar: docs/sharding_representation.md of openxla/shardy.
#pragma once

#include "core/model/partition.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

struct SdyMesh {
    std::vector<PartitionAxis> axes;
    std::vector<std::int64_t> deviceIds; ///< empty: in order
    friend bool operator==(const SdyMesh&, const SdyMesh&) = default;
};

/// An axis, or the part `size` of it that has `preSize` parts before it (major).
struct SdyAxis {
    std::string name;
    std::int64_t preSize = 1;
    std::int64_t size = 0; ///< 0: the whole axis
    friend bool operator==(const SdyAxis&, const SdyAxis&) = default;
};

struct SdyDimension {
    std::vector<SdyAxis> axes; ///< major first
    bool open = false;         ///< '?': may be cut further
    std::optional<std::int64_t> priority;
    friend bool operator==(const SdyDimension&, const SdyDimension&) = default;
};

struct SdySharding {
    std::string mesh;               ///< symbol name; empty for a mesh written in place
    std::optional<SdyMesh> inPlace; ///< that mesh
    std::vector<SdyDimension> dims;
    std::vector<SdyAxis> replicated, unreduced;
    friend bool operator==(const SdySharding&, const SdySharding&) = default;
};

/// Text may begin with "#sdy.mesh", "mesh" or '<'. @throws InputError
SdyMesh parseSdyMesh(std::string_view text, const std::string& where);

/// Text may begin with "#sdy.sharding" or '<'. @throws InputError
SdySharding parseSdySharding(std::string_view text, const std::string& where);

/// "[<…>, <…>]", also inside "#sdy.sharding_per_value<…>". @throws InputError
std::vector<SdySharding> parseSdyShardings(std::string_view text, const std::string& where);

/// The shardings in the terms of Partition, with axes that are used in parts split into those parts
/// ("x:(1)2", "x:(2)2"), major first. Axes of size 1 are kept.
class SdyAxes {
public:
    explicit SdyAxes(SdyMesh mesh);

    /// Notes which parts of axes a sharding uses. @throws InputError for unknown axes, parts that
    /// do not divide, and axes that are used twice
    void add(const SdySharding& sharding, const std::string& where);

    std::vector<PartitionAxis> axes() const;
    /// @return std::nullopt when parts of an axis overlap so that they cannot be told apart
    std::optional<TensorSharding> translate(const SdySharding& sharding) const;

private:
    struct Axis {
        PartitionAxis whole;
        std::vector<std::int64_t> borders; ///< ascending, from 1 to the size
    };
    const Axis* find(std::string_view name) const;
    bool dividesWell(const Axis& axis) const;
    bool append(std::vector<std::uint8_t>& into, const SdyAxis& part) const;

    std::vector<Axis> m_axes;
};

} // namespace shardlens
