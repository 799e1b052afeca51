// SPDX-License-Identifier: Apache-2.0
// Files of the folder of real models, for tests that take all of them. Under sanitizers they are
// the smallest of each ending in each folder: every importer runs, and the tests of each importer
// read the others.
#pragma once

#include "tests/test_program.h"

#include <QDir>
#include <QFileInfo>
#include <QSet>
#include <QStringList>

namespace shardlens::test {

/// Where the real models are; the folder may be missing.
inline QDir realModels() {
    return QDir(QStringLiteral(SHARDLENS_SHARED "/data/models"));
}

/// Adds a row "folder/name" with the path, a QString, for each file of these folders.
/// @returns whether there is any
inline bool addRealModels(const QStringList& folders) {
    QTest::addColumn<QString>("file");
    bool any = false;
    for (const QString& folder : folders) {
        QSet<QString> endings;
        const QDir dir(realModels().filePath(folder));
        for (const QFileInfo& file : dir.entryInfoList(QDir::Files, QDir::Size | QDir::Reversed)) {
            if (kSanitized && endings.contains(file.suffix())) continue;
            endings.insert(file.suffix());
            QTest::newRow(qPrintable(folder + '/' + file.fileName())) << file.filePath();
            any = true;
        }
    }
    return any;
}

} // namespace shardlens::test
