// SPDX-License-Identifier: Apache-2.0
// Sharding dumps of MaxText (tests/utils/sharding_info, written by its sharding dump): how each
// array of a train state, or each activation, is spread over a mesh. A dump is a plan, not a model:
// it is read and written back with the same content, and can be laid beside a model's.
#pragma once

#include "core/model/partition.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

/// What stands for one dimension of a PartitionSpec: nothing, a name, or a tuple of names.
struct DumpDimension {
    std::vector<std::string>
        names;          ///< axes of the mesh, major first; logical names in a logical dump
    bool tuple = false; ///< written as a tuple, even of one
    friend bool operator==(const DumpDimension&, const DumpDimension&) = default;
};

struct DumpEntry {
    std::string name;
    DType dtype = DType::Unknown; ///< only activations say it
    Shape shape;
    std::vector<DumpDimension> spec;    ///< may be shorter than the shape: the rest is whole
    std::vector<DumpDimension> logical; ///< logical names of the dimensions, where known
    friend bool operator==(const DumpEntry&, const DumpEntry&) = default;
};

struct ShardingDump {
    enum class Kind : std::uint8_t {
        Named,      ///< mesh axes of each array, with the mesh
        Logical,    ///< logical names of each array; what they mean is in a named dump
        Activation, ///< mesh axes and logical names of activations, without the mesh
    };
    Kind kind = Kind::Named;
    std::vector<PartitionAxis> mesh; ///< of a named dump
    std::vector<DumpEntry> entries;  ///< in the order of the file

    std::int64_t devices() const; ///< product of the mesh
    friend bool operator==(const ShardingDump&, const ShardingDump&) = default;
};

/// Whether the beginning of a JSON file looks like a dump. Never throws.
bool looksLikeShardingDump(std::string_view head);

/// @throws InputError naming the array, for malformed JSON, other keys, shapes out of range, specs
/// longer than shapes, axes that the mesh lacks or that are used twice
ShardingDump parseShardingDump(std::string_view json, const std::string& where);

/// The JSON of a dump: the same content as the file that was read.
std::string writeShardingDump(const ShardingDump& dump);

/// Takes the logical names of a logical dump into the entries of the same names.
/// @return how many entries got theirs
std::size_t addLogicalNames(ShardingDump& dump, const ShardingDump& logical);

/// Layout of an entry in the terms of Partition. std::nullopt where an axis is not of the mesh.
std::optional<TensorSharding> shardingOf(const ShardingDump& dump, const DumpEntry& entry);

/// Elements of an entry's largest shard: dimensions are cut into pieces of equal size, rounded up.
double shardElements(const ShardingDump& dump, const DumpEntry& entry);

/// Bytes of all entries on one device. @param bytesPerElement of entries that do not say their type
double bytesPerDevice(const ShardingDump& dump, double bytesPerElement);

} // namespace shardlens
