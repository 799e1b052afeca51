// SPDX-License-Identifier: Apache-2.0
// The statements that write a session, one function a fact. They run inside the transaction of the
// caller, which decides what belongs together.
#pragma once

#include "core/store/session_content.h"
#include "core/store/sqlite_database.h"

#include <cstddef>

namespace shardlens {

/// Fills a database without tables.
void writeNewSession(const SqliteDatabase& database, const NewSession& content);
void writeModel(const SqliteDatabase& database, const ModelReference& model,
                const std::string& graph);
void writeViewState(const SqliteDatabase& database,
                    const std::map<std::string, std::string>& values);

/// The current request and how many steps are done; also the version of this program.
void writePosition(const SqliteDatabase& database, const PlanRequest& request, std::size_t done);
/// @param number from 1
void writeStep(const SqliteDatabase& database, std::size_t number, const Step& step);
/// Forgets the steps after the first `kept`, and plans that only they could bring back.
void forgetSteps(const SqliteDatabase& database, std::size_t kept);

PlanId writePlan(const SqliteDatabase& database, const NewPlan& plan);
void writePlanName(const SqliteDatabase& database, PlanId plan,
                   const std::optional<std::string>& name);

/// Version of this program, as sessions record it.
std::string programVersion();
std::int64_t secondsNow(); ///< since 1970, UTC

} // namespace shardlens
