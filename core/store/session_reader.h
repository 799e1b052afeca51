// SPDX-License-Identifier: Apache-2.0
// Reads the values of an examined session, and checks what SQLite cannot: that every text in it is
// one this program understands, so that a later undo cannot fail on it.
#pragma once

#include "core/store/session_content.h"
#include "core/store/sqlite_database.h"

namespace shardlens {

/// @throws StoreError if a text in it makes no sense
SessionContent readContent(const SqliteDatabase& database);

/// The plans that are kept now.
std::vector<KeptPlan> readPlans(const SqliteDatabase& database);

/// The text behind a (packed, length) query that takes an id. @throws StoreError if there is none
std::string readPackedText(const SqliteDatabase& database, std::string_view query, std::int64_t id);

} // namespace shardlens
