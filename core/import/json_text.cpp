// SPDX-License-Identifier: Apache-2.0
// See json_text.h.
#include "core/import/json_text.h"

#include "core/error.h"

#include <fmt/format.h>

namespace shardlens {

nlohmann::json parseJson(std::string_view text, const std::string& where) {
    using Json = nlohmann::json;
    constexpr int kDeepest = 64;
    try {
        return Json::parse(text, [&](int depth, Json::parse_event_t, const Json&) {
            if (depth > kDeepest)
                throw InputError(fmt::format("the JSON is nested more than {} deep", kDeepest),
                                 where, "the file is no model");
            return true;
        });
    } catch (const Json::parse_error& error) {
        throw InputError(fmt::format("the text is not valid JSON at byte {}", error.byte), where,
                         "the file is damaged or cut off: write it again");
    } catch (const Json::exception&) {
        throw InputError("the JSON holds a number that is out of range", where,
                         "the file is damaged: write it again");
    }
}

const nlohmann::json& member(const nlohmann::json& object, std::string_view key) {
    static const nlohmann::json absent;
    if (!object.is_object()) return absent;
    const auto found = object.find(key);
    return found == object.end() ? absent : *found;
}

std::string textOf(const nlohmann::json& object, std::string_view key) {
    const nlohmann::json& value = member(object, key);
    return value.is_string() ? value.get<std::string>() : std::string();
}

} // namespace shardlens
