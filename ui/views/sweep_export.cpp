// SPDX-License-Identifier: Apache-2.0
// See sweep_export.h.
#include "ui/views/sweep_export.h"

#include "core/error.h"
#include "ui/views/sweep_painter.h"

#include <QBuffer>
#include <QCoreApplication>
#include <QPainter>
#include <QSvgGenerator>

#include <algorithm>

namespace shardlens {

namespace {

void paintSweepPage(const SweepExport& wish, QPainter& painter, QImage* stamps) {
    const Palette& palette = wish.dark ? Palette::dark() : Palette::light();
    painter.setFont(wish.font);
    painter.fillRect(QRect(QPoint(), wish.size), palette.canvas);
    std::vector<int> shown = wish.shown;
    std::ranges::sort(shown);
    const SweepGeometry geometry =
        layOutSweep(*wish.data, shown, wish.measure, wish.size, QFontMetricsF(painter.font()));
    SweepPainter page(*wish.data, shown, geometry, palette, painter);
    if (stamps) page.useStamps(stamps);
    page.paint();
}

QByteArray sweepPng(const SweepExport& wish) {
    QImage image(wish.size * wish.pixelRatio, QImage::Format_RGB32);
    image.setDevicePixelRatio(wish.pixelRatio);
    {
        QPainter painter(&image);
        paintSweepPage(wish, painter, &image);
    }
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    image.save(&buffer, "PNG");
    return bytes;
}

QByteArray sweepSvg(const SweepExport& wish) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize(wish.size);
    generator.setViewBox(QRect(QPoint(), wish.size));
    generator.setTitle(QCoreApplication::translate("Sweep", "Sweep"));
    QPainter painter(&generator);
    paintSweepPage(wish, painter, nullptr);
    painter.end();
    return bytes;
}

QByteArray sweepRows(const SweepExport& wish) {
    const SweepTable& all = wish.data->table();
    SweepTable listed{all.settings, {}, all.memoryLimit};
    for (const int row : wish.shown) listed.rows.push_back(wish.data->row(row));
    return QByteArray::fromStdString(sweepCsv(listed));
}

} // namespace

QByteArray exportSweep(const SweepExport& wish, const QString& file) {
    if (file.endsWith(QLatin1String(".csv"), Qt::CaseInsensitive)) return sweepRows(wish);
    if (file.endsWith(QLatin1String(".png"), Qt::CaseInsensitive)) return sweepPng(wish);
    if (file.endsWith(QLatin1String(".svg"), Qt::CaseInsensitive)) return sweepSvg(wish);
    throw InputError("the file's ending says no format", file.toStdString(),
                     "end it in .csv, .png or .svg");
}

} // namespace shardlens
