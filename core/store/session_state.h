// SPDX-License-Identifier: Apache-2.0
// What is behind a Session: private to session.cpp and session_open.cpp.
#pragma once

#include "core/store/session.h"
#include "core/store/session_lock.h"
#include "core/store/sqlite_database.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardlens {

struct Session::State {
    using PlanName = std::pair<PlanId, std::optional<std::string>>;

    /// Held by the writer; read-only sessions have none. First member: released after the database
    /// is closed.
    std::optional<SessionLock> lock;
    SqliteDatabase database; ///< of a read-only session: a copy in memory
    std::filesystem::path file;
    SessionLimits limits;
    std::string reason; ///< why it is read-only
    SessionContent content;

    State& writable(); ///< @throws StoreError if it is not
    bool endsWith(const std::string& kind) const;
    const KeptPlan& plan(PlanId id) const; ///< @throws StoreError if it is not kept
    void requireFreeName(const std::string& name) const;
    /// Writes and commits a step that changes one plan's name, on top of the steps that are done.
    void finishPlanStep(SqliteTransaction& transaction, const StepText& text,
                        const Step::PlanChange& change);
    void moveTo(std::size_t done, const std::string& fields, const std::vector<PlanName>& names);
};

} // namespace shardlens
