// SPDX-License-Identifier: Apache-2.0
// Writes files in the background, one after the other: all that were asked for are wanted.
#pragma once

#include "core/plan/background_lane.h"

#include <QObject>

#include <deque>
#include <functional>

namespace shardlens {

class FileWriter : public QObject {
    Q_OBJECT

public:
    /// Writes the file of that name, on another thread. @throws std::exception: why it cannot
    using Write = std::function<void(const QString& file)>;

    explicit FileWriter(QObject* parent = nullptr);
    ~FileWriter() override; ///< what is being written is finished

    void write(const QString& file, Write how);
    bool busy() const { return !m_files.empty(); }

signals:
    void written(const QString& file, const QString& error); ///< error is empty if it went well

private:
    struct File {
        QString name;
        Write how;
    };

    void writeNext();

    std::deque<File> m_files;               ///< the first is being written
    std::unique_ptr<BackgroundLane> m_lane; // last: joined first
};

} // namespace shardlens
