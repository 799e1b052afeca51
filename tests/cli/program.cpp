// SPDX-License-Identifier: Apache-2.0
// See program.h.
#include "tests/cli/program.h"

#include <QProcess>

namespace shardlens::test {

Outcome run(const QStringList& arguments, const QProcessEnvironment& environment) {
    constexpr int kPatience = 60'000; // ms
    QProcess process;
    process.setProcessEnvironment(environment);
    process.setStandardInputFile(QProcess::nullDevice());
    process.start(QStringLiteral(SHARDLENS_PROGRAM), arguments);
    Outcome outcome;
    outcome.crashed =
        !process.waitForFinished(kPatience) || process.exitStatus() == QProcess::CrashExit;
    outcome.code = process.exitCode();
    outcome.out = process.readAllStandardOutput();
    outcome.error = process.readAllStandardError();
    return outcome;
}

QProcessEnvironment withoutDisplay() {
    auto environment = QProcessEnvironment::systemEnvironment();
    for (const char* variable : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) {
        environment.remove(QString::fromLatin1(variable));
    }
    return environment;
}

bool isOneSentence(const QByteArray& error) {
    return error.startsWith("shardlens: ") && error.endsWith('\n') && error.count('\n') == 1 &&
           error.size() > 20;
}

} // namespace shardlens::test
