// SPDX-License-Identifier: Apache-2.0
// Runs the program and keeps what it did, for the tests of the command line.
#pragma once

#include <QByteArray>
#include <QProcessEnvironment>
#include <QStringList>

namespace shardlens::test {

struct Outcome {
    bool crashed = false; ///< ended by a signal, or never ended
    int code = -1;
    QByteArray out, error;
};

/// Runs to the end, at most a minute.
Outcome run(const QStringList& arguments,
            const QProcessEnvironment& environment = QProcessEnvironment::systemEnvironment());

/// The environment of a machine without a display.
QProcessEnvironment withoutDisplay();

/// Whether stderr is one line "shardlens: …", as every error is reported.
bool isOneSentence(const QByteArray& error);

} // namespace shardlens::test
