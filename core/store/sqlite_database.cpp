// SPDX-License-Identifier: Apache-2.0
// The wrapper over the C interface, and the table of what each SQLite failure means to a user.
#include "core/store/sqlite_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <limits>

namespace shardlens {

namespace {

constexpr int kBusyMilliseconds = 2000;

struct Meaning {
    std::string problem, hint;
};

Meaning meaningOf(int code, const char* message) {
    switch (code & 0xff) {
    case SQLITE_FULL:
        return {"there is no room left to write", "free disk space, then repeat; nothing changed"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return {"another program is using the file", "close it there, then repeat"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return {"the file may not be written", "save under another name"};
    case SQLITE_CANTOPEN:
        return {"the file cannot be opened", "check that its folder exists and may be written"};
    case SQLITE_CORRUPT:
        return {fmt::format("the file is damaged ({})", message), "go back to a copy of it"};
    case SQLITE_NOTADB:
        return {"the file is not a database", "choose another file"};
    case SQLITE_IOERR:
        return {fmt::format("the disk reports an error ({})", message),
                "check the disk, then repeat or save under another name"};
    case SQLITE_NOMEM:
        return {"there is not enough memory", "close other programs, then repeat"};
    case SQLITE_TOOBIG:
        return {"a text is too large for the file", "leave it out"};
    default:
        return {fmt::format("the database reports: {}", message), {}};
    }
}

[[noreturn]] void fail(int code, const char* message, const std::string& where) {
    Meaning meaning = meaningOf(code, message);
    throw SqliteError(code & 0xff, std::move(meaning.problem), where, std::move(meaning.hint));
}

/// The path as an SQLite URI; what has a meaning in a URI is escaped.
std::string immutableUri(const std::string& path) {
    std::string uri = "file:";
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_')
            uri += c;
        else
            uri += fmt::format("%{:02X}", byte);
    }
    return uri + "?immutable=1";
}

} // namespace

SqliteError::SqliteError(int code, std::string problem, std::string where, std::string hint)
    : StoreError(std::move(problem), std::move(where), std::move(hint)), m_code(code) {
}

bool SqliteError::damaged() const noexcept {
    return m_code == SQLITE_CORRUPT || m_code == SQLITE_NOTADB;
}

bool SqliteError::unavailable() const noexcept {
    return m_code == SQLITE_CANTOPEN || m_code == SQLITE_BUSY;
}

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const noexcept {
    sqlite3_finalize(statement);
}

SqliteStatement::SqliteStatement(sqlite3* database, const std::string& where, std::string_view sql)
    : m_database(database), m_where(&where) {
    sqlite3_stmt* statement = nullptr;
    const int code =
        sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
    m_statement.reset(statement);
    check(code);
}

void SqliteStatement::check(int code) const {
    if (code != SQLITE_OK) fail(code, sqlite3_errmsg(m_database), *m_where);
}

SqliteStatement& SqliteStatement::bindInteger(int index, std::int64_t value) {
    check(sqlite3_bind_int64(m_statement.get(), index, value));
    return *this;
}

SqliteStatement& SqliteStatement::bind(int index, std::string_view text) {
    // An empty view may have no data pointer, which SQLite would take for NULL.
    check(sqlite3_bind_text64(m_statement.get(), index, text.empty() ? "" : text.data(),
                              text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
    return *this;
}

SqliteStatement& SqliteStatement::bindOptional(int index, const std::optional<std::string>& text) {
    if (text) return bind(index, std::string_view(*text));
    check(sqlite3_bind_null(m_statement.get(), index));
    return *this;
}

SqliteStatement& SqliteStatement::bind(int index, std::span<const std::byte> blob) {
    static constexpr char nothing = 0;
    const void* data = blob.empty() ? static_cast<const void*>(&nothing) : blob.data();
    check(sqlite3_bind_blob64(m_statement.get(), index, data, blob.size(), SQLITE_TRANSIENT));
    return *this;
}

bool SqliteStatement::step() {
    const int code = sqlite3_step(m_statement.get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) fail(code, sqlite3_errmsg(m_database), *m_where);
    return false;
}

void SqliteStatement::run() {
    while (step()) {}
    check(sqlite3_reset(m_statement.get()));
}

std::int64_t SqliteStatement::integer(int column) const {
    return sqlite3_column_int64(m_statement.get(), column);
}

std::string SqliteStatement::text(int column) const {
    return optionalText(column).value_or(std::string());
}

std::optional<std::string> SqliteStatement::optionalText(int column) const {
    const auto* text =
        reinterpret_cast<const char*>(sqlite3_column_text(m_statement.get(), column));
    if (text == nullptr) return std::nullopt;
    const int size = sqlite3_column_bytes(m_statement.get(), column);
    return std::string(text, static_cast<std::size_t>(size));
}

std::span<const std::byte> SqliteStatement::blob(int column) const {
    const auto* data =
        static_cast<const std::byte*>(sqlite3_column_blob(m_statement.get(), column));
    const int size = sqlite3_column_bytes(m_statement.get(), column);
    return {data, data == nullptr ? 0 : static_cast<std::size_t>(size)};
}

void SqliteDatabase::Close::operator()(sqlite3* database) const noexcept {
    sqlite3_close_v2(database);
}

SqliteDatabase::SqliteDatabase(const std::string& name, int flags, std::string where)
    : m_where(std::make_unique<const std::string>(std::move(where))) {
    sqlite3* database = nullptr;
    const int code = sqlite3_open_v2(name.c_str(), &database,
                                     flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
    m_database.reset(database);
    check(code);
    // Asked to write a file that may not be written, SQLite would quietly open it for reading.
    if ((flags & SQLITE_OPEN_READWRITE) != 0 && sqlite3_db_readonly(database, "main") == 1)
        check(SQLITE_READONLY);
    check(sqlite3_busy_timeout(database, kBusyMilliseconds));
    // A file from outside may carry a hostile schema: it gets no say beyond its tables.
    check(sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr));
    check(sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr));
    check(sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr));
    check(sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr));
    execute("PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON");
}

SqliteDatabase SqliteDatabase::open(const std::filesystem::path& file, Access access,
                                    std::string where) {
    const std::string path = file.string();
    if (where.empty()) where = path;
    switch (access) {
    case Access::Create:
        return {path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, where};
    case Access::ReadWrite:
        return {path, SQLITE_OPEN_READWRITE, where};
    case Access::ReadOnly:
        return {path, SQLITE_OPEN_READONLY, where};
    case Access::Immutable:
        break;
    }
    return {immutableUri(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, where};
}

SqliteDatabase SqliteDatabase::inMemory(std::string where) {
    return {":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, std::move(where)};
}

void SqliteDatabase::check(int code) const {
    if (code == SQLITE_OK) return;
    fail(code, m_database ? sqlite3_errmsg(m_database.get()) : sqlite3_errstr(code), *m_where);
}

SqliteStatement SqliteDatabase::prepare(std::string_view sql) const {
    return {m_database.get(), *m_where, sql};
}

void SqliteDatabase::execute(std::string_view sql) const {
    const char* next = sql.data();
    const char* const end = sql.data() + sql.size();
    while (next < end) {
        sqlite3_stmt* raw = nullptr;
        check(
            sqlite3_prepare_v2(m_database.get(), next, static_cast<int>(end - next), &raw, &next));
        const std::unique_ptr<sqlite3_stmt, SqliteStatement::Finalize> statement(raw);
        int code = SQLITE_ROW;
        while (raw != nullptr && code == SQLITE_ROW) code = sqlite3_step(raw);
        if (raw != nullptr && code != SQLITE_DONE) check(code);
    }
}

std::int64_t SqliteDatabase::integer(std::string_view sql) const {
    SqliteStatement statement = prepare(sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::string SqliteDatabase::text(std::string_view sql) const {
    SqliteStatement statement = prepare(sql);
    return statement.step() ? statement.text(0) : std::string();
}

void SqliteDatabase::prepareForWriting() const {
    if (text("PRAGMA journal_mode = WAL") != "wal")
        throw StoreError("its folder does not allow a write-ahead log", *m_where,
                         "save the session in another folder");
    execute("PRAGMA synchronous = NORMAL");
}

void SqliteDatabase::limitSize(std::uint64_t bytes) const {
    const auto page = static_cast<std::uint64_t>(integer("PRAGMA page_size"));
    const std::uint64_t pages = std::min<std::uint64_t>(bytes / page, 0xfffffffe);
    execute(fmt::format("PRAGMA max_page_count = {}", std::max<std::uint64_t>(pages, 1)));
}

void SqliteDatabase::checkpoint() const {
    check(sqlite3_wal_checkpoint_v2(m_database.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                    nullptr));
}

void SqliteDatabase::copyTo(const SqliteDatabase& target) const {
    sqlite3_backup* backup =
        sqlite3_backup_init(target.m_database.get(), "main", m_database.get(), "main");
    if (backup == nullptr) target.check(sqlite3_extended_errcode(target.m_database.get()));
    const int stepped = sqlite3_backup_step(backup, -1);
    const int finished = sqlite3_backup_finish(backup);
    if (finished != SQLITE_OK) target.check(finished);
    if (stepped != SQLITE_DONE) target.check(stepped);
}

bool SqliteDatabase::hasMoved() const {
    int moved = 0;
    const int code = sqlite3_file_control(m_database.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return code == SQLITE_OK && moved != 0;
}

bool SqliteDatabase::inTransaction() const {
    return sqlite3_get_autocommit(m_database.get()) == 0;
}

SqliteTransaction::SqliteTransaction(const SqliteDatabase& database) : m_database(database) {
    m_database.execute("BEGIN IMMEDIATE");
}

SqliteTransaction::~SqliteTransaction() {
    if (!m_database.inTransaction()) return;
    try {
        m_database.execute("ROLLBACK");
    } catch (const StoreError&) {
        // Nothing was committed; SQLite undoes the rest when the file is next opened.
    }
}

void SqliteTransaction::commit() {
    m_database.execute("COMMIT");
}

} // namespace shardlens
