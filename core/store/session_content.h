// SPDX-License-Identifier: Apache-2.0
// What a session holds, as plain values. Long texts (the graph snapshot, plans) are fetched apart.
#pragma once

#include "core/plan/request.h"
#include "core/store/model_reference.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardlens {

using PlanId = std::int64_t;

/// A plan laid aside under a name, to be compared with.
struct KeptPlan {
    PlanId id = 0;
    std::string name;         ///< unique in the session
    std::string madeBy;       ///< "optimum", "template megatron", …
    std::string provenance;   ///< "modelled", "measured" or "published"
    std::int64_t created = 0; ///< seconds since 1970, UTC
    friend bool operator==(const KeptPlan&, const KeptPlan&) = default;
};

/// A plan to be kept.
struct NewPlan {
    std::string name, madeBy, provenance;
    std::string json; ///< the plan's text
};

/// What the user reads about a step, and what kind it is (an id of the window's commands).
struct StepText {
    std::string label; ///< "Pin layers.57.q_proj to n@tp"
    std::string kind;  ///< "pin", "unpin", "mesh", …
};

/// One step of the undo history.
struct Step {
    /// A plan came to be kept (no name before), was renamed, or was put away (no name after).
    struct PlanChange {
        PlanId plan = 0;
        std::optional<std::string> nameBefore, nameAfter;
        friend bool operator==(const PlanChange&, const PlanChange&) = default;
    };

    std::string label, kind;
    std::string before = "{}", after = "{}"; ///< JSON: the request's fields that the step changed
    std::vector<PlanChange> plans;
    std::int64_t created = 0; ///< seconds since 1970, UTC
    friend bool operator==(const Step&, const Step&) = default;
};

/// What a new session starts from.
struct NewSession {
    ModelReference model;
    std::string graph; ///< snapshot of the graph as JSON text (model/graph_json.h)
    PlanRequest request;
    std::map<std::string, std::string> viewState;
};

struct SessionContent {
    ModelReference model;
    PlanRequest request;         ///< after the steps that are done
    std::vector<KeptPlan> plans; ///< in the order they were made
    std::vector<Step> steps;     ///< the first `done` are done, the rest can be redone
    std::size_t done = 0;
    std::map<std::string, std::string> viewState; ///< key -> JSON text, meant for the window
    std::string writtenBy;                        ///< version of the program that last wrote it
    std::int64_t created = 0;                     ///< seconds since 1970, UTC
};

} // namespace shardlens
