// SPDX-License-Identifier: Apache-2.0
// See file_writer.h.
#include "ui/jobs/file_writer.h"

#include "ui/format.h"

namespace shardlens {

FileWriter::FileWriter(QObject* parent)
    : QObject(parent), m_lane(std::make_unique<BackgroundLane>()) {
}

FileWriter::~FileWriter() {
    m_lane->waitForIdle();
}

void FileWriter::write(const QString& file, Write how) {
    m_files.push_back({file, std::move(how)});
    if (m_files.size() == 1) writeNext();
}

void FileWriter::writeNext() {
    m_lane->submit([this, file = m_files.front()](const std::stop_token&) {
        QString error;
        try {
            file.how(file.name);
        } catch (const std::exception& failure) {
            error = text(failure.what());
        }
        QMetaObject::invokeMethod(this, [this, name = file.name, error] {
            m_files.pop_front();
            if (!m_files.empty()) writeNext();
            emit written(name, error);
        });
    });
}

} // namespace shardlens
