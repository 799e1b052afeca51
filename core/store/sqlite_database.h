// SPDX-License-Identifier: Apache-2.0
// A thin owner of an SQLite connection: prepared statements only, transactions as scopes that roll
// back unless committed, and every failure as one StoreError that names the file. Everything else
// of SQLite stays visible, because a deeper wrapper would only hide what its manual explains.
// A connection is used by one thread at a time.
#pragma once

#include "core/error.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace shardlens {

/// A failure reported by SQLite, in the user's words.
class SqliteError : public StoreError {
public:
    SqliteError(int code, std::string problem, std::string where, std::string hint);

    int code() const noexcept { return m_code; } ///< primary result code, e.g. SQLITE_FULL
    bool damaged() const noexcept;               ///< the file is corrupt or no database
    bool unavailable() const noexcept;           ///< another process is just opening or closing it

private:
    int m_code;
};

/// A prepared statement. Parameters are numbered from 1, columns from 0, as SQLite does.
class SqliteStatement {
public:
    template <std::integral Integer>
    SqliteStatement& bind(int index, Integer value) {
        return bindInteger(index, static_cast<std::int64_t>(value));
    }
    SqliteStatement& bind(int index, std::string_view text);
    SqliteStatement& bindOptional(int index, const std::optional<std::string>& text); ///< or NULL
    SqliteStatement& bind(int index, std::span<const std::byte> blob);

    bool step(); ///< @return whether there is a row
    void run();  ///< executes a statement that gives no rows, and makes it ready for the next

    std::int64_t integer(int column) const;
    std::string text(int column) const;
    std::optional<std::string> optionalText(int column) const;
    std::span<const std::byte> blob(int column) const; ///< valid until the next step()

private:
    friend class SqliteDatabase;
    SqliteStatement(sqlite3* database, const std::string& where, std::string_view sql);

    SqliteStatement& bindInteger(int index, std::int64_t value);
    void check(int code) const;

    struct Finalize {
        void operator()(sqlite3_stmt* statement) const noexcept;
    };
    sqlite3* m_database;
    const std::string* m_where; ///< the database's
    std::unique_ptr<sqlite3_stmt, Finalize> m_statement;
};

class SqliteDatabase {
public:
    enum class Access : std::uint8_t {
        Create,    ///< read and write, made if absent
        ReadWrite, ///< must exist
        ReadOnly,  ///< beside a writer that is alive
        Immutable, ///< nobody writes: no locks, no side files, pending -wal content is not seen
    };
    /// @param where the name for error messages; the file's own if empty
    static SqliteDatabase open(const std::filesystem::path& file, Access access,
                               std::string where = {});
    static SqliteDatabase inMemory(std::string where);

    SqliteStatement prepare(std::string_view sql) const;
    /// Runs the statements of a literal (schema, pragmas) and drops their rows.
    void execute(std::string_view sql) const;
    std::int64_t integer(std::string_view sql) const; ///< first column of the first row
    std::string text(std::string_view sql) const;     ///< likewise

    /// Write-ahead log, checked foreign keys, patience of 2 s with other programs.
    void prepareForWriting() const;
    /// Caps the growth of the file; beyond it writing fails as on a full disk.
    void limitSize(std::uint64_t bytes) const;
    /// Moves the log into the file. @throws SqliteError if that is not wholly possible
    void checkpoint() const;
    /// Copies the content of this database, as of now, over that of another.
    void copyTo(const SqliteDatabase& target) const;
    /// Whether the file was moved, replaced or deleted since it was opened.
    bool hasMoved() const;
    bool inTransaction() const;

    const std::string& where() const { return *m_where; }

private:
    struct Close {
        void operator()(sqlite3* database) const noexcept;
    };
    SqliteDatabase(const std::string& name, int flags, std::string where);
    void check(int code) const;

    std::unique_ptr<const std::string> m_where; ///< at a fixed place: statements refer to it
    std::unique_ptr<sqlite3, Close> m_database;
};

/// A write transaction from construction to commit(); left otherwise, it never happened.
class SqliteTransaction {
public:
    explicit SqliteTransaction(const SqliteDatabase& database);
    ~SqliteTransaction();
    SqliteTransaction(const SqliteTransaction&) = delete;
    SqliteTransaction& operator=(const SqliteTransaction&) = delete;

    void commit();

private:
    const SqliteDatabase& m_database;
};

} // namespace shardlens
