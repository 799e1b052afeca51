// SPDX-License-Identifier: Apache-2.0
// JSON of files from outside: parsed with a bound on nesting, so that a file of brackets does not
// become a document, and with errors that name the byte. For the importers' .cpp files only.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace shardlens {

/// @throws InputError with the byte when the text is no JSON, or nested too deep
nlohmann::json parseJson(std::string_view text, const std::string& where);

/// A member of an object; null if there is none, or no object.
const nlohmann::json& member(const nlohmann::json& object, std::string_view key);

/// A text member, empty if it is none.
std::string textOf(const nlohmann::json& object, std::string_view key);

} // namespace shardlens
