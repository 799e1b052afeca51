// SPDX-License-Identifier: Apache-2.0
// Works on the canonical JSON form, so that a new field of the request needs no code here.
#include "core/store/request_change.h"

#include "core/error.h"

#include <nlohmann/json.hpp>

namespace shardlens {

namespace {

using Json = nlohmann::ordered_json;

/// Fields that are left out of a request keep their defaults, so a part of one can be read alone.
bool isPartOfRequest(Json fields) {
    static const Json version = Json::parse(toJson(PlanRequest{})).at("version");
    if (fields.contains("version")) return false;
    fields["version"] = version;
    try {
        requestFromJson(fields.dump());
        return true;
    } catch (const InputError&) {
        return false;
    }
}

} // namespace

RequestChange changeBetween(const PlanRequest& before, const PlanRequest& after) {
    const Json old = Json::parse(toJson(before));
    const Json next = Json::parse(toJson(after));
    Json oldFields = Json::object(), nextFields = Json::object();
    for (const auto& [key, value] : next.items()) {
        if (old.at(key) == value) continue;
        oldFields[key] = old.at(key);
        nextFields[key] = value;
    }
    return {oldFields.dump(), nextFields.dump()};
}

PlanRequest withFields(const PlanRequest& request, const std::string& fields) {
    const Json changed = Json::parse(fields, nullptr, /*allow_exceptions=*/false);
    if (!changed.is_object()) throw InputError("the fields are not a JSON object", "step");
    Json document = Json::parse(toJson(request));
    for (const auto& [key, value] : changed.items()) document[key] = value;
    return requestFromJson(document.dump());
}

bool isChange(const RequestChange& change) {
    const Json before = Json::parse(change.before, nullptr, /*allow_exceptions=*/false);
    const Json after = Json::parse(change.after, nullptr, /*allow_exceptions=*/false);
    if (!before.is_object() || !after.is_object() || before.size() != after.size()) return false;
    for (const auto& [key, value] : before.items())
        if (!after.contains(key)) return false;
    return isPartOfRequest(before) && isPartOfRequest(after);
}

} // namespace shardlens
