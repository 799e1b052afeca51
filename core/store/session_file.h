// SPDX-License-Identifier: Apache-2.0
// Session files as files: made whole or not at all, examined before they are touched, and copied
// into memory when they are only to be read.
#pragma once

#include "core/store/session_lock.h"
#include "core/store/sqlite_database.h"

#include <cstdint>
#include <filesystem>
#include <functional>

namespace shardlens {

/// The real place of an existing session. @throws StoreError if there is no regular file
std::filesystem::path existingSessionFile(const std::filesystem::path& path);

/// The real place of a file to be made. @throws StoreError if its folder does not exist
std::filesystem::path newSessionFile(const std::filesystem::path& path);

/// Why the file cannot be written in place; empty if it can.
std::string obstacleToWriting(const std::filesystem::path& file);

/// Examines a session nobody writes (the caller holds its lock, or there can be none).
/// @throws StoreError; the file and its folder are as before in any case
void examineSessionFile(const std::filesystem::path& file, std::uint64_t maxBytes);

/// The examined content of a session nobody writes, in memory, in the newest schema.
SqliteDatabase readSessionFile(const std::filesystem::path& file, std::uint64_t maxBytes);

/// The same of a session that a process on this machine is writing.
SqliteDatabase readLiveSessionFile(const std::filesystem::path& file);

/// Makes a file beside `file`, lets `fill` write it, and puts it in the place of `file` in one
/// step, durably. The caller holds the lock of `file`. @throws StoreError; then nothing is left
void publishSessionFile(const std::filesystem::path& file,
                        const std::function<void(const SqliteDatabase&)>& fill);

/// Deletes a session and what belongs to it. The caller holds its lock. @throws StoreError
void removeSessionFile(const std::filesystem::path& file);

} // namespace shardlens
