// SPDX-License-Identifier: Apache-2.0
// See sweep_model.h.
#include "ui/models/sweep_model.h"

#include "core/units.h"
#include "ui/format.h"

#include <QRegularExpression>

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>

namespace shardlens {

namespace {

enum Figure { TimeColumn, MemoryColumn, BubbleColumn, StateColumn, FigureCount };

/// Best first: on the front, fitting, too large, without a plan.
double stateKey(const SweepRow& row) {
    if (!row.error.empty()) return 3;
    return row.fits ? (row.front ? 0 : 1) : 2;
}

QString stateText(const SweepRow& row) {
    if (!row.error.empty()) return text(row.error);
    if (!row.fits) return SweepModel::tr("too large");
    return row.front ? SweepModel::tr("front") : QString();
}

} // namespace

double measureOf(const SweepRow& row, SweepMeasure measure) {
    return measure == SweepMeasure::Time     ? row.seconds
           : measure == SweepMeasure::Memory ? row.memory
                                             : row.bubble;
}

QString formatMeasure(double value, SweepMeasure measure) {
    return measure == SweepMeasure::Time     ? formatTime(value)
           : measure == SweepMeasure::Memory ? formatBytes(value)
                                             : formatPercent(value);
}

QString measureName(SweepMeasure measure) {
    return measure == SweepMeasure::Time     ? SweepModel::tr("Step time")
           : measure == SweepMeasure::Memory ? SweepModel::tr("Memory a device")
                                             : SweepModel::tr("Bubble");
}

// --- data
// -----------------------------------------------------------------------------------------

SweepData::SweepData(SweepTable table, std::vector<SweepAxis> axes, std::vector<GridPoint> points)
    : m_table(std::move(table)), m_axes(std::move(axes)), m_points(std::move(points)) {
    for (std::size_t c = 0; c < m_table.settings.size(); ++c) {
        std::map<std::string, double> words;
        for (const SweepRow& row : m_table.rows)
            if (const auto* word = std::get_if<std::string>(&row.values[c])) words[*word] = 0;
        double rank = 0;
        for (auto& [word, place] : words) place = rank++;
        std::vector<double>& keys = m_keys.emplace_back();
        for (const SweepRow& row : m_table.rows) {
            const auto* word = std::get_if<std::string>(&row.values[c]);
            keys.push_back(word ? words.at(*word)
                                : static_cast<double>(std::get<std::int64_t>(row.values[c])));
        }
    }
    for (int figure = 0; figure < FigureCount; ++figure) {
        std::vector<double>& keys = m_keys.emplace_back();
        for (const SweepRow& row : m_table.rows)
            keys.push_back(figure == StateColumn
                               ? stateKey(row)
                               : measureOf(row, static_cast<SweepMeasure>(figure)));
    }
    collectWords();
    sortColumns();
}

void SweepData::sortColumns() {
    std::vector<int> rows(m_table.rows.size());
    std::iota(rows.begin(), rows.end(), 0);
    for (std::size_t c = 0; c < m_keys.size(); ++c) {
        const bool figure =
            c >= m_table.settings.size(); // without a plan there is nothing to compare
        m_sorted.push_back(rows);
        std::ranges::stable_sort(m_sorted.back(), {}, [&](int row) {
            return std::pair(figure && !this->row(row).error.empty(),
                             m_keys[c][static_cast<std::size_t>(row)]);
        });
    }
}

void SweepData::collectWords() {
    for (const SweepRow& row : m_table.rows) {
        QString words = stateText(row);
        for (const SweepValue& value : row.values) words += QLatin1Char(' ') + text(wordOf(value));
        m_words.push_back(words.toLower());
    }
}

QString SweepData::title(int column) const {
    const auto settings = static_cast<int>(m_table.settings.size());
    if (column < settings) return text(m_table.settings[static_cast<std::size_t>(column)]);
    if (column == settings + StateColumn) return SweepModel::tr("State");
    return column == settings + TimeColumn     ? SweepModel::tr("Time")
           : column == settings + MemoryColumn ? SweepModel::tr("Memory")
                                               : SweepModel::tr("Bubble");
}

QString SweepData::describe(int index) const {
    const SweepRow& row = this->row(index);
    QStringList settings;
    for (std::size_t c = 0; c < m_table.settings.size(); ++c)
        settings << QStringLiteral("%1 %2").arg(text(m_table.settings[c]),
                                                text(wordOf(row.values[c])));
    QString words = settings.join(QStringLiteral(", "));
    if (!row.error.empty()) return words + QLatin1Char('\n') + text(row.error);
    words += SweepModel::tr("\nstep %1, memory %2 a device, bubble %3")
                 .arg(formatTime(row.seconds), formatBytes(row.memory), formatPercent(row.bubble));
    if (!row.fits) words += SweepModel::tr("\nDoes not fit the memory");
    if (row.front) words += SweepModel::tr("\nNo point is quicker and leaner");
    return words;
}

// --- model
// ----------------------------------------------------------------------------------------

SweepModel::SweepModel(QObject* parent)
    : QAbstractTableModel(parent), m_palette(&Palette::light()) {
}

int SweepModel::settings() const {
    return m_data ? static_cast<int>(m_data->table().settings.size()) : 0;
}

void SweepModel::setSweep(std::shared_ptr<const SweepData> data) {
    beginResetModel();
    const bool sameColumns = m_data && data && m_data->table().settings == data->table().settings;
    m_data = std::move(data);
    if (!sameColumns) m_sortColumn = -1;
    understand();
    arrange();
    endResetModel();
    emit orderChanged();
}

bool SweepModel::setFilter(const SweepFilter& filter) {
    beginResetModel();
    m_filter = filter;
    const bool understood = understand();
    arrange();
    endResetModel();
    emit orderChanged();
    return understood;
}

void SweepModel::setPalette(const Palette& palette) {
    m_palette = &palette;
    if (rowCount() > 0)
        emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1),
                         {Qt::ForegroundRole});
}

bool SweepModel::understand() {
    m_terms.clear();
    if (!m_data) return true;
    static const QRegularExpression blank(QStringLiteral("[\\s,;]+"));
    static const QRegularExpression relation(QStringLiteral("^(\\w+)(<=|>=|[=<>])(.+)$"));
    for (const QString& word : m_filter.text.split(blank, Qt::SkipEmptyParts)) {
        Term term;
        term.text = word.toLower();
        if (const auto match = relation.match(word); match.hasMatch()) {
            for (int c = 0; c < columnCount(); ++c)
                if (m_data->title(c).compare(match.captured(1), Qt::CaseInsensitive) == 0)
                    term.column = c;
            const QString sign = match.captured(2);
            term.relation =
                sign.size() == 2 ? (sign[0] == QLatin1Char('<') ? 'l' : 'g') : sign[0].toLatin1();
            term.text = match.captured(3);
            term.number = term.text.toDouble(&term.isNumber);
            if (term.column < 0 || (term.relation != '=' && !term.isNumber)) {
                m_terms.clear();
                return false;
            }
            if (term.column == settings() + MemoryColumn) term.number *= kGiB;
            if (term.column == settings() + BubbleColumn) term.number /= 100;
        }
        m_terms.push_back(term);
    }
    return true;
}

bool SweepModel::wanted(int source) const {
    const SweepRow& row = m_data->row(source);
    if (m_filter.onlyFitting && !row.fits) return false;
    if (m_filter.onlyFront && !row.front) return false;
    return std::ranges::all_of(m_terms, [&](const Term& term) {
        if (term.column < 0) return m_data->words(source).contains(term.text);
        if (!term.isNumber)
            return display(source, term.column).compare(term.text, Qt::CaseInsensitive) == 0;
        const double value = m_data->key(source, term.column);
        return term.relation == '='   ? value == term.number
               : term.relation == '<' ? value < term.number
               : term.relation == '>' ? value > term.number
               : term.relation == 'l' ? value <= term.number
                                      : value >= term.number;
    });
}

void SweepModel::arrange() {
    m_order.clear();
    m_place.assign(m_data ? m_data->table().rows.size() : 0, -1);
    if (!m_data) return;
    const auto add = [&](int source) {
        if (wanted(source)) m_order.push_back(source);
    };
    if (m_sortColumn < 0 || m_sortColumn >= columnCount()) {
        for (int source = 0; source < m_data->rows(); ++source) add(source);
    } else if (m_sortOrder == Qt::AscendingOrder) {
        std::ranges::for_each(m_data->sorted(m_sortColumn), add);
    } else {
        std::ranges::for_each(m_data->sorted(m_sortColumn) | std::views::reverse, add);
        // those without a plan stay at the end
        std::ranges::stable_partition(m_order, [&](int source) {
            return m_sortColumn < settings() || m_data->row(source).error.empty();
        });
    }
    for (std::size_t row = 0; row < m_order.size(); ++row)
        m_place[static_cast<std::size_t>(m_order[row])] = static_cast<int>(row);
}

void SweepModel::sort(int column, Qt::SortOrder order) {
    if (column == m_sortColumn && order == m_sortOrder) return;
    emit layoutAboutToBeChanged({}, VerticalSortHint);
    const QModelIndexList before = persistentIndexList();
    std::vector<int> sources;
    for (const QModelIndex& index : before) sources.push_back(source(index.row()));
    m_sortColumn = column;
    m_sortOrder = order;
    arrange();
    QModelIndexList after;
    for (qsizetype i = 0; i < before.size(); ++i)
        after << index(place(sources[static_cast<std::size_t>(i)]), before[i].column());
    changePersistentIndexList(before, after);
    emit layoutChanged({}, VerticalSortHint);
    emit orderChanged();
}

int SweepModel::source(int row) const {
    return row >= 0 && row < rowCount() ? m_order[static_cast<std::size_t>(row)] : -1;
}

int SweepModel::place(int source) const {
    const bool known = source >= 0 && static_cast<std::size_t>(source) < m_place.size();
    return known ? m_place[static_cast<std::size_t>(source)] : -1;
}

int SweepModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_order.size());
}

int SweepModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() || !m_data ? 0 : settings() + FigureCount;
}

QString SweepModel::display(int source, int column) const {
    const SweepRow& row = m_data->row(source);
    if (column < settings()) return text(wordOf(row.values[static_cast<std::size_t>(column)]));
    const int figure = column - settings();
    if (figure == StateColumn) return stateText(row);
    if (!row.error.empty()) return QStringLiteral("–");
    const auto measure = static_cast<SweepMeasure>(figure);
    return formatMeasure(measureOf(row, measure), measure);
}

QVariant SweepModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const int source = this->source(index.row()), column = index.column();
    const SweepRow& row = m_data->row(source);
    const bool state = column == settings() + StateColumn;
    switch (role) {
    case Qt::DisplayRole:
        return display(source, column);
    case Qt::ToolTipRole:
    case Qt::AccessibleDescriptionRole:
        return m_data->describe(source);
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(
            Qt::Alignment((state ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
    case Qt::ForegroundRole:
        if (!row.error.empty()) return QBrush(m_palette->bad);
        if (!row.fits) return QBrush(m_palette->muted);
        if (row.front && state) return QBrush(m_palette->accent);
        return {};
    default:
        return {};
    }
}

QVariant SweepModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || !m_data || section < 0 || section >= columnCount())
        return {};
    if (role == Qt::DisplayRole) return m_data->title(section);
    return {};
}

} // namespace shardlens
