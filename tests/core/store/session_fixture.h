// SPDX-License-Identifier: Apache-2.0
// What the tests of sessions share: the exact state of a folder, to prove that nothing in it
// changed, and the sentence of a refusal.
#pragma once

#include "core/error.h"
#include "session_sample.h"

#include <QCryptographicHash>
#include <QDir>
#include <QFile>
#include <QMap>
#include <QTemporaryDir>

#include <string>

namespace shardlens::test {

/// Name -> SHA-256 of every file of a folder, hidden ones included.
inline QMap<QString, QByteArray> filesOf(const QString& folder) {
    QMap<QString, QByteArray> files;
    const QDir::Filters all = QDir::Files | QDir::Hidden | QDir::System;
    for (const QString& name : QDir(folder).entryList(all)) {
        QFile file(folder + "/" + name);
        if (!file.open(QIODevice::ReadOnly)) continue;
        files[name] = QCryptographicHash::hash(file.readAll(), QCryptographicHash::Sha256);
    }
    return files;
}

inline std::filesystem::path pathIn(const QTemporaryDir& folder, const char* name) {
    return folder.filePath(name).toStdString();
}

/// The sentence of the StoreError that a call throws; empty if it throws none.
template <typename Call>
std::string refusal(Call call) {
    try {
        call();
        return {};
    } catch (const StoreError& error) {
        return error.what();
    }
}

} // namespace shardlens::test

/// That a sentence says something.
#define VERIFY_SAYS(sentence, part)                                                                \
    do {                                                                                           \
        const std::string& said = (sentence);                                                      \
        QVERIFY2(said.find(part) != std::string::npos, ("said: '" + said + "'").c_str());          \
    } while (false)
