// SPDX-License-Identifier: Apache-2.0
// A session: one SQLite file that holds everything a user did, so that the window can be closed or
// killed at any instant and opened again as it was. Every function that changes something is one
// transaction that is in the file when the function returns; if it throws, nothing changed, neither
// in the file nor in content(). A crash of the program loses nothing that was acknowledged; after a
// power cut the last steps may be missing (synchronous=NORMAL), but never half there.
//
// A session file has one writer. Whoever opens it second gets a read-only session: a copy in memory
// of what the file held at that moment, with the reason. So does whoever may not write the file or
// its folder. An unsaved session is a session file too, in a private folder (session_folder.h).
//
// A Session is used by one thread at a time, and may move between threads.
#pragma once

#include "core/store/session_content.h"
#include "core/store/session_lock.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace shardlens {

enum class OpenMode : std::uint8_t { ReadWrite, ReadOnly };

class SqliteDatabase;

struct SessionLimits {
    std::uint64_t maxBytes = std::uint64_t{1} << 30; ///< of the file, for reading and for growing
};

class Session {
public:
    /// Makes a new file. @throws StoreError, also if there is a file of that name
    static Session create(const std::filesystem::path& path, const NewSession& content,
                          const SessionLimits& limits = {});
    /// Makes a file of its own in a folder (made if absent, for this user alone), for a session
    /// that has no name yet.
    static Session createTemporary(const std::filesystem::path& folder, const NewSession& content,
                                   const SessionLimits& limits = {});
    /// Opens a file. A file that is damaged, newer than this program, or no session is refused and
    /// left untouched to the byte, with nothing beside it. An older one is brought up to date.
    /// @throws StoreError: one sentence (what, where, what to do)
    static Session open(const std::filesystem::path& path, OpenMode mode = OpenMode::ReadWrite,
                        const SessionLimits& limits = {});
    /// Closes a session and deletes its file. A read-only one is only closed.
    static void discard(Session session);

    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    ~Session();

    const std::filesystem::path& path() const;
    bool readOnly() const;
    /// Why, as a clause: "it is open in another window (process 42 on host atlas …)"; else empty.
    const std::string& readOnlyReason() const;

    const SessionContent& content() const;
    std::string graph() const;               ///< the snapshot's text
    std::string planText(PlanId plan) const; ///< of a kept plan. @throws StoreError if unknown

    /// Joins a change to the last step if that is of the same kind and nothing was undone since,
    /// as when a number is dragged: undo then goes back to before the first of them.
    enum class Merge : std::uint8_t { No, WithLast };

    /// Makes a new request the current one; steps that were undone are forgotten.
    /// @return false if the request is the current one already: then there is no step
    bool applyStep(const StepText& text, const PlanRequest& request, Merge merge = Merge::No);
    PlanId savePlan(const StepText& text, const NewPlan& plan); ///< @throws if the name is taken
    void renamePlan(const StepText& text, PlanId plan, const std::string& name); ///< likewise
    void removePlan(const StepText& text, PlanId plan);

    bool undo(); ///< @return false if there is nothing to undo
    bool redo(); ///< @return false if there is nothing to redo

    /// View state is kept but not undone. An empty value removes the key.
    void setViewState(const std::string& key, const std::string& json);
    void setViewState(const std::map<std::string, std::string>& values); ///< all at once

    /// Replaces the model's facts and snapshot, after the file was read anew. Not an undo step:
    /// what follows from the request is no decision of the user.
    void setModel(const ModelReference& model, const std::string& graph);

    /// Writes everything to another file, in one step, and opens that. A file of that name is
    /// replaced. @throws StoreError, also if another window has that file; this session is as
    /// before
    Session saveAs(const std::filesystem::path& path) const;

private:
    struct State;
    explicit Session(std::unique_ptr<State> state);
    static Session openWritable(const std::filesystem::path& file, const SessionLimits& limits);
    static Session openReadable(const std::filesystem::path& file, const SessionLimits& limits,
                                std::string reason);
    static Session openBeside(const SessionLock::Holder& holder, const std::filesystem::path& file,
                              const SessionLimits& limits);
    static Session openWritten(SessionLock lock, const std::filesystem::path& file,
                               const SessionLimits& limits);
    static Session openCopy(SqliteDatabase copy, const std::filesystem::path& file,
                            const SessionLimits& limits, std::string reason);

    std::unique_ptr<State> m_state;
};

} // namespace shardlens
