// SPDX-License-Identifier: Apache-2.0
// The symbols of an MLIR module: functions, globals, meshes; and what its name and attributes say.
#pragma once

#include "core/import/mlir_module.h"
#include "core/import/sdy_text.h"

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardlens::mlir {

struct Function {
    const Operation* op = nullptr;
    std::string_view name;
    const Block* body = nullptr; ///< null for declarations and bodies of several blocks
    std::vector<std::vector<Attribute>> argumentAttributes;
    bool isPublic = true;
};

struct Program {
    std::unordered_map<std::string_view, Function> functions;
    std::unordered_map<std::string_view, const Operation*> globals;
    std::map<std::string, SdyMesh> meshes;
    std::vector<std::string_view> functionOrder;
    std::string_view name; ///< of the module, may be empty
    std::int64_t partitions = 1, replicas = 1;
    std::size_t modules = 0; ///< at the top; the first is read
    std::string_view text;   ///< the file, for places in messages
    bool subAxes = false;    ///< parts of axes are used somewhere

    /// The function that is the graph. @throws InputError when there is none
    const Function& main(const std::string& where) const;
};

Program programOf(const Module& module, std::string_view text, const std::string& where);

/// A global's type and whether it is one of the ops that define globals.
bool isGlobal(const Operation& op);
Type typeOfGlobal(const Operation& op);

/// Value of `name` among attributes; empty if absent.
std::string_view valueOf(const std::vector<Attribute>& attributes, std::string_view name);

/// The string in a location ("\"a/b\"(#loc1)", "#loc3"), aliases followed; empty if it has none.
std::string locationName(const Module& module, std::string_view location);

} // namespace shardlens::mlir
