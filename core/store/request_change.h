// SPDX-License-Identifier: Apache-2.0
// What a step changed of a PlanRequest: the top-level fields of its JSON form that differ, before
// and after. Undo puts the one back, redo the other; nothing else of the request is touched.
#pragma once

#include "core/plan/request.h"

#include <string>

namespace shardlens {

/// Two JSON objects with the same keys.
struct RequestChange {
    std::string before = "{}", after = "{}";
    bool empty() const { return before == after; }
    friend bool operator==(const RequestChange&, const RequestChange&) = default;
};

RequestChange changeBetween(const PlanRequest& before, const PlanRequest& after);

/// The request with the fields of a JSON object put in place.
/// @throws InputError if the object is no such thing
PlanRequest withFields(const PlanRequest& request, const std::string& fields);

/// Whether both sides are fields of a request, with sound values, and the same fields.
bool isChange(const RequestChange& change);

} // namespace shardlens
