// SPDX-License-Identifier: Apache-2.0
// Other people's solvers on our problems, run as programs: toulbar2 (weighted constraint
// satisfaction) and CBC (Alpa's integer program).
#pragma once

#include "core/solve/problem_export.h"

#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtDebug>

#include <chrono>
#include <cmath>
#include <fstream>

namespace shardlens::test {

inline bool installed(const char* program) {
    return !QStandardPaths::findExecutable(QString::fromLatin1(program)).isEmpty();
}

class ReferenceSolvers {
public:
    explicit ReferenceSolvers(int limitMilliseconds = 60'000) : m_limit(limitMilliseconds) {}

    /// The optimum; kInfinite if there is none; NaN when the program gave no answer in time.
    /// @param problem  folded or with usage over time; its limit is not seen
    double toulbar2(const auto& problem) {
        std::ofstream file(path("p.wcsp").toStdString());
        const double offset = solve::writeWcsp(file, problem);
        file.close();
        return run("toulbar2", {path("p.wcsp")}, "Optimum: (\\d+)") + offset;
    }

    double cbc(const auto& problem) {
        std::ofstream file(path("p.lp").toStdString());
        solve::writeLp(file, problem);
        file.close();
        return run("cbc", {path("p.lp"), "ratioGap", "0", "solve", "quit"},
                   "Objective value: +(-?[0-9.e+]+)");
    }

    /// Wall time of the last program, with its start and its reading of the file.
    double seconds() const { return m_seconds; }

private:
    double run(const char* program, const QStringList& arguments, const char* pattern) {
        const auto start = std::chrono::steady_clock::now();
        QProcess process;
        process.start(QString::fromLatin1(program), arguments);
        const bool finished = process.waitForFinished(m_limit);
        m_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (!finished) {
            process.kill();
            process.waitForFinished();
            return std::nan("");
        }
        const QString output = QString::fromLocal8Bit(process.readAllStandardOutput());
        const auto match = QRegularExpression(QString::fromLatin1(pattern)).match(output);
        if (match.hasMatch()) return match.captured(1).toDouble();
        const bool none = output.contains("No solution") || output.contains("infeasible");
        if (!none) qWarning("%s", qPrintable(output));
        return none ? solve::kInfinite : std::nan("");
    }

    QString path(const char* name) const { return m_folder.filePath(QString::fromLatin1(name)); }

    QTemporaryDir m_folder;
    int m_limit;
    double m_seconds = 0;
};

} // namespace shardlens::test
