// SPDX-License-Identifier: Apache-2.0
// Strict reading of single values of a request's JSON: what is wrong is said in one sentence with
// the key and the value. Shared by the parts of the request.
#pragma once

#include "core/plan/pipeline_setup.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace shardlens::request_json {

using Json = nlohmann::ordered_json;

/// @throws InputError
[[noreturn]] void refuse(const std::string& problem, const std::string& hint = {});

/// A value for an error message: on one line, short, and never itself a reason to fail.
std::string shown(const Json& value);

// @throws InputError
std::string textOf(const Json& value, std::string_view key);
std::int64_t integerOf(const Json& value, std::string_view key, std::int64_t least,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max());
double numberOf(const Json& value, std::string_view key); ///< finite, not negative
const Json& arrayOf(const Json& value, std::string_view key);

/// null without a setup.
Json pipelineJson(const std::optional<PipelineSetup>& setup);
std::optional<PipelineSetup> pipelineOf(const Json& value); ///< @throws InputError

} // namespace shardlens::request_json
