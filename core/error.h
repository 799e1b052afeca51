// SPDX-License-Identifier: Apache-2.0
// The one small family of exceptions of the core. Each says what went wrong, where, and what to
// do about it, in words a user can act on; what() is the whole sentence. Asserts are for our bugs.
#pragma once

#include <stdexcept>
#include <string>

namespace shardlens {

class Error : public std::runtime_error {
public:
    /// @param problem what is wrong, one clause without a full stop
    /// @param where   file, op, option or byte offset; may be empty
    /// @param hint    what the user can do; may be empty
    explicit Error(std::string problem, std::string where = {}, std::string hint = {});

    const std::string& problem() const noexcept { return m_problem; }
    const std::string& where() const noexcept { return m_where; }
    const std::string& hint() const noexcept { return m_hint; }

private:
    std::string m_problem, m_where, m_hint;
};

/// A file or text from outside that cannot be used.
class InputError : public Error {
    using Error::Error;
};

/// A request that contradicts itself: unknown cluster, mesh that does not fit, clashing pins.
class PlanError : public Error {
    using Error::Error;
};

/// The session store cannot be opened, read or written.
class StoreError : public Error {
    using Error::Error;
};

/// The work was cancelled through its std::stop_token; nothing went wrong.
class Cancelled : public Error {
public:
    Cancelled() : Error("cancelled") {}
};

} // namespace shardlens
