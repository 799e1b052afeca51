// SPDX-License-Identifier: Apache-2.0
// See timeline_export.h.
#include "ui/views/timeline_export.h"

#include "core/error.h"
#include "core/schedule/schedule_csv.h"
#include "core/schedule/trace.h"
#include "ui/views/timeline_painter.h"

#include <QCoreApplication>
#include <QPageSize>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <streambuf>

namespace shardlens {

namespace {

using namespace schedule;

constexpr int kMostPixels = 30'000; ///< of a side; what QImage and viewers can bear
constexpr double kRowHeight = 26, kAround = 190;

/// A stream into a QIODevice, so that a trace of gigabytes is never whole in memory.
class DeviceBuffer : public std::streambuf {
public:
    explicit DeviceBuffer(QIODevice& device) : m_device(device) {
        setp(m_block.data(), m_block.data() + m_block.size());
    }

protected:
    int_type overflow(int_type next) override {
        if (sync() != 0) return traits_type::eof();
        if (!traits_type::eq_int_type(next, traits_type::eof())) {
            *pptr() = traits_type::to_char_type(next);
            pbump(1);
        }
        return traits_type::not_eof(next);
    }
    int sync() override {
        const auto size = static_cast<qint64>(pptr() - pbase());
        const bool whole = m_device.write(pbase(), size) == size;
        setp(m_block.data(), m_block.data() + m_block.size());
        return whole ? 0 : -1;
    }

private:
    QIODevice& m_device;
    std::array<char, 1 << 16> m_block{};
};

TimelineFormat formatOf(const QString& file) {
    const std::pair<const char*, TimelineFormat> endings[] = {{".svg", TimelineFormat::Svg},
                                                              {".png", TimelineFormat::Png},
                                                              {".pdf", TimelineFormat::Pdf},
                                                              {".csv", TimelineFormat::Csv},
                                                              {".json", TimelineFormat::Trace}};
    for (const auto& [ending, format] : endings) {
        if (file.endsWith(QLatin1String(ending), Qt::CaseInsensitive)) return format;
    }
    throw InputError("the file's ending says no format", file.toStdString(),
                     "end it in .svg, .png, .pdf, .csv or .json (trace)");
}

QSize pageOf(const TimelinePicture& picture, const TimelineExport& options) {
    const double needed = kAround + kRowHeight * static_cast<double>(picture.rows().size());
    const double height = options.size.height() > 0 ? options.size.height() : needed;
    return {std::clamp(options.size.width(), 200, kMostPixels / 2),
            static_cast<int>(std::clamp(height, 120.0, kMostPixels / 2.0))};
}

void paintPage(const TimelinePicture& picture, const TimelineExport& options, QSize page,
               QPainter& painter) {
    painter.setFont(options.font);
    painter.fillRect(QRect(QPoint(), page), picture.palette().canvas);
    const bool whole = !(options.end > options.begin);
    const TimelineWindow window{whole ? 0 : options.begin, whole ? picture.makespan() : options.end,
                                0};
    const TimelineGeometry geometry =
        layOutTimeline(picture, page, QFontMetricsF(painter.font()), window, true);
    TimelinePaintState state;
    state.device = options.device;
    TimelinePainter(picture, geometry, state, painter).paint();
}

void writePng(const TimelinePicture& picture, const TimelineExport& options, QIODevice& out) {
    const QSize page = pageOf(picture, options);
    const double ratio = std::clamp(options.pixelRatio, 1.0, 4.0);
    QImage image(page * ratio, QImage::Format_RGB32);
    if (image.isNull()) throw Error("the picture is too large", {}, "draw a part of the time");
    image.setDevicePixelRatio(ratio);
    {
        QPainter painter(&image);
        paintPage(picture, options, page, painter);
    }
    image.save(&out, "PNG");
}

void writeSvg(const TimelinePicture& picture, const TimelineExport& options, QIODevice& out) {
    const QSize page = pageOf(picture, options);
    QSvgGenerator generator;
    generator.setOutputDevice(&out);
    generator.setSize(page);
    generator.setViewBox(QRect(QPoint(), page));
    generator.setTitle(QCoreApplication::translate("Timeline", "Pipeline schedule"));
    QPainter painter(&generator);
    paintPage(picture, options, page, painter);
}

void writePdf(const TimelinePicture& picture, const TimelineExport& options, QIODevice& out) {
    const QSize page = pageOf(picture, options);
    QPdfWriter writer(&out);
    writer.setTitle(QCoreApplication::translate("Timeline", "Pipeline schedule"));
    writer.setResolution(96); // one logical pixel a dot
    writer.setPageMargins(QMarginsF());
    writer.setPageSize(QPageSize(QSizeF(page) * 72 / 96, QPageSize::Point));
    QPainter painter(&writer);
    paintPage(picture, options, page, painter);
}

void writeCsv(const TimelinePicture& picture, QIODevice& out) {
    const Schedule& s = picture.schedule();
    const std::string csv = writeScheduleCsv(asLists(s.orders, s.program, s.timeline));
    out.write(csv.data(), static_cast<qint64>(csv.size()));
}

void writeTraceTo(const TimelinePicture& picture, QIODevice& out) {
    const Schedule& s = picture.schedule();
    DeviceBuffer buffer(out);
    std::ostream stream(&buffer);
    TraceOptions options;
    if (picture.style().secondsPerUnit > 0) options.secondsPerUnit = picture.style().secondsPerUnit;
    writeTrace(stream, s.program, s.timeline, s.account, options);
    stream.flush();
}

} // namespace

void writeTimeline(const TimelinePicture& picture, const QString& file,
                   const TimelineExport& options) {
    const TimelineFormat format = options.format ? *options.format : formatOf(file);
    QSaveFile out(file);
    const auto fail = [&] {
        throw Error(out.errorString().toStdString(), file.toStdString(),
                    "choose a place that can be written");
    };
    if (!out.open(QIODevice::WriteOnly)) fail();
    switch (format) {
    case TimelineFormat::Svg:
        writeSvg(picture, options, out);
        break;
    case TimelineFormat::Png:
        writePng(picture, options, out);
        break;
    case TimelineFormat::Pdf:
        writePdf(picture, options, out);
        break;
    case TimelineFormat::Csv:
        writeCsv(picture, out);
        break;
    case TimelineFormat::Trace:
        writeTraceTo(picture, out);
        break;
    }
    if (!out.commit()) fail();
}

} // namespace shardlens
