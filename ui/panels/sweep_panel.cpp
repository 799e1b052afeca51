// SPDX-License-Identifier: Apache-2.0
// See sweep_panel.h.
#include "ui/panels/sweep_panel.h"

#include "core/error.h"
#include "ui/format.h"
#include "ui/views/sweep_export.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QJsonDocument>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollBar>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace shardlens {

namespace {

constexpr int kSweepSaveMilliseconds = 1000, kSweepFilterMilliseconds = 150;
const QString kSweepStateKey = QStringLiteral("sweep");

} // namespace

SweepPanel::SweepPanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_form(new SweepForm), m_model(new SweepModel(this)),
      m_chart(new SweepChart), m_table(makeTable()), m_job(new SweepJob(this)) {
    setObjectName(QStringLiteral("sweepPanel"));
    m_chart->setPlaceholder(tr("Choose what is swept at the left, then Run."));
    auto* split = new QSplitter(Qt::Horizontal);
    split->setObjectName(QStringLiteral("sweepSplit"));
    split->addWidget(m_chart);
    split->addWidget(m_table);
    split->setStretchFactor(0, 3);
    split->setStretchFactor(1, 2);
    split->setChildrenCollapsible(false);
    split->setSizes({560, 440});
    auto* right = new QVBoxLayout;
    right->setSpacing(0);
    right->addWidget(makeBar());
    right->addWidget(split, 1);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(makeSide());
    layout->addLayout(right, 1);
    setFocusProxy(m_form);
    for (QTimer* timer : {&m_saveDelay, &m_filterDelay}) timer->setSingleShot(true);
    m_saveDelay.setInterval(kSweepSaveMilliseconds);
    m_filterDelay.setInterval(kSweepFilterMilliseconds);
    connectParts();
    useTheme();
    take();
}

QWidget* SweepPanel::makeSide() {
    auto* side = new QWidget(this);
    m_run = new QPushButton(tr("&Run"), side);
    m_run->setObjectName(QStringLiteral("sweepRun"));
    m_status = new QLabel(side);
    m_status->setObjectName(QStringLiteral("sweepStatus"));
    m_point = new QLabel(side);
    m_point->setObjectName(QStringLiteral("sweepPoint"));
    m_open = new QPushButton(tr("&Open plan"), side);
    m_open->setObjectName(QStringLiteral("sweepOpen"));
    m_open->setToolTip(tr("Make the selected point the plan of the window (Enter)"));
    for (QLabel* label : {m_status, m_point}) {
        label->setWordWrap(true);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    }
    auto* layout = new QVBoxLayout(side);
    layout->setContentsMargins(0, 0, 0, 8);
    layout->setSpacing(6);
    layout->addWidget(m_form);
    auto* rest = new QVBoxLayout;
    rest->setContentsMargins(8, 0, 8, 0);
    rest->setSpacing(6);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_run, m_status, m_point})
        rest->addWidget(widget);
    rest->addStretch(1);
    rest->addWidget(m_open);
    layout->addLayout(rest, 1);
    side->setFixedWidth(std::max(250, m_form->sizeHint().width() + 16));
    return side;
}

QTableView* SweepPanel::makeTable() {
    auto* table = new QTableView;
    table->setObjectName(QStringLiteral("sweepTable"));
    table->setAccessibleName(tr("Points of the sweep"));
    table->setModel(m_model);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setSelectionMode(QAbstractItemView::SingleSelection);
    table->setSortingEnabled(true);
    table->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
    table->horizontalHeader()->setStretchLastSection(true);
    table->horizontalHeader()->setHighlightSections(false);
    table->verticalHeader()->hide();
    table->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
    table->setShowGrid(false);
    table->setWordWrap(false);
    table->setAlternatingRowColors(true);
    return table;
}

QWidget* SweepPanel::makeBar() {
    auto* bar = new QWidget(this);
    auto* layout = new QHBoxLayout(bar);
    layout->setContentsMargins(6, 3, 6, 3);
    layout->setSpacing(6);
    m_measure = new QComboBox(bar);
    m_measure->setObjectName(QStringLiteral("sweepMeasure"));
    m_measure->setAccessibleName(tr("Quantity"));
    for (int m = 0; m < 3; ++m) m_measure->addItem(measureName(static_cast<SweepMeasure>(m)));
    m_filter = new QLineEdit(bar);
    m_filter->setObjectName(QStringLiteral("sweepFilter"));
    m_filter->setAccessibleName(tr("Filter"));
    m_filter->setPlaceholderText(tr("Filter: tp=8 pp>4 interleaved memory<60"));
    m_filter->setToolTip(tr("Words that must all hold: a column with =, <, >, <= or >=, or a word "
                            "of any column; memory in GiB, time in seconds, bubble in percent"));
    m_filter->setClearButtonEnabled(true);
    m_fitting = new QCheckBox(tr("that &fit"), bar);
    m_fitting->setObjectName(QStringLiteral("sweepFitting"));
    m_fitting->setToolTip(tr("Only points that fit the memory"));
    m_front = new QCheckBox(tr("&front"), bar);
    m_front->setObjectName(QStringLiteral("sweepFront"));
    m_front->setToolTip(tr("Only points that no other beats in both time and memory"));
    m_export = new QToolButton(bar);
    m_export->setObjectName(QStringLiteral("sweepExport"));
    m_export->setText(tr("Export"));
    m_export->setToolTip(tr("The points as a table, or the chart as a picture"));
    m_export->setAutoRaise(true);
    m_export->setPopupMode(QToolButton::InstantPopup);
    auto* menu = new QMenu(m_export);
    const std::array<std::array<QString, 3>, 3> formats = {
        {{tr("&CSV table…"), QStringLiteral("csv"), tr("Tables (*.csv)")},
         {tr("&PNG picture…"), QStringLiteral("png"), tr("PNG pictures (*.png)")},
         {tr("&SVG picture…"), QStringLiteral("svg"), tr("SVG pictures (*.svg)")}}};
    for (const auto& [words, ending, filter] : formats) {
        QAction* action = menu->addAction(
            words, this, [this, end = ending, files = filter] { chooseFile(end, files); });
        action->setObjectName(QStringLiteral("sweep.export.") + ending);
    }
    m_export->setMenu(menu);
    layout->addWidget(m_measure);
    layout->addWidget(m_filter, 1);
    layout->addWidget(m_fitting);
    layout->addWidget(m_front);
    layout->addWidget(m_export);
    return bar;
}

void SweepPanel::connectParts() {
    connect(m_run, &QPushButton::clicked, this, [this] {
        if (m_job->running())
            m_job->stop();
        else
            run();
    });
    connect(m_form, &SweepForm::runRequested, this, &SweepPanel::run);
    connect(m_form, &SweepForm::changed, this, [this] { m_saveDelay.start(); });
    connect(m_job, &SweepJob::changed, this, &SweepPanel::take);
    connect(m_job, &SweepJob::written, this, [this](const QString& file, const QString& error) {
        if (error.isEmpty())
            emit message(MessageKind::Information,
                         tr("The sweep is written to %1.").arg(QFileInfo(file).fileName()));
        else
            emit message(MessageKind::Error, error);
    });
    connect(m_measure, &QComboBox::currentIndexChanged, this, [this](int index) {
        m_chart->setMeasure(static_cast<SweepMeasure>(index));
        m_saveDelay.start();
    });
    connect(m_filter, &QLineEdit::textEdited, &m_filterDelay, qOverload<>(&QTimer::start));
    connect(m_filter, &QLineEdit::returnPressed, this, &SweepPanel::applyFilter);
    connect(&m_filterDelay, &QTimer::timeout, this, &SweepPanel::applyFilter);
    for (QCheckBox* box : {m_fitting, m_front})
        connect(box, &QCheckBox::toggled, this, &SweepPanel::applyFilter);
    connect(m_chart, &SweepChart::selectionChanged, this, &SweepPanel::showSelection);
    connect(m_chart, &SweepChart::openRequested, this, &SweepPanel::open);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& now) {
                if (!m_selecting && now.isValid()) m_chart->select(m_model->source(now.row()));
            });
    connect(m_table, &QTableView::activated, this,
            [this](const QModelIndex& index) { open(m_model->source(index.row())); });
    connect(m_open, &QPushButton::clicked, this, [this] { open(selected()); });
    connect(&m_saveDelay, &QTimer::timeout, this, &SweepPanel::saveViewStateNow);
    connect(&m_document, &Document::loaded, this, [this] {
        m_job->clear();
        restoreViewState();
    });
    connect(&m_document, &Document::requestChanged, this, &SweepPanel::showStatus);
}

// --- running
// --------------------------------------------------------------------------------------

void SweepPanel::run() {
    if (!m_document.isOpen()) return;
    SweepRequest request{m_document.request(), {}};
    try {
        request.axes = m_form->axes();
    } catch (const InputError& error) {
        emit message(MessageKind::Error, text(error.what()));
        return;
    }
    // A point is a plan of its own: what is pinned in the window's plan does not bind it.
    request.base.pipeline.emplace();
    request.base.pipeline->planner = m_form->planner().toStdString();
    m_base = request.base;
    m_job->start({m_document.modelFile(), m_document.bundle()}, request);
}

void SweepPanel::take() {
    const SweepState& state = m_job->state();
    const int before = selected();
    if (state.data != m_model->sweep()) {
        const bool other = !m_model->sweep() || !state.data ||
                           m_model->sweep()->table().settings != state.data->table().settings;
        const int scrolled = m_table->verticalScrollBar()->value();
        m_selecting = true;
        m_model->setSweep(state.data);
        m_chart->setSweep(state.data, m_model->order());
        m_selecting = false;
        if (other) {
            m_table->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
            for (int c = 0; c + 1 < m_model->columnCount(); ++c)
                m_table->setColumnWidth(
                    c, std::max(
                           m_table->fontMetrics().horizontalAdvance(
                               m_model->headerData(c, Qt::Horizontal, Qt::DisplayRole).toString()) +
                               26,
                           c + 4 < m_model->columnCount() ? 44 : 84));
        } else {
            m_table->verticalScrollBar()->setValue(scrolled);
        }
        if (!other) select(before);
    }
    m_chart->setPlaceholder(state.running ? tr("Sweeping…")
                            : !state.error.isEmpty()
                                ? state.error
                                : tr("Choose what is swept at the left, then Run."));
    m_measure->setEnabled(!state.data || shapeOf(*state.data) != SweepShape::Scatter);
    m_export->setEnabled(state.data != nullptr);
    m_run->setText(state.running ? tr("Stop") : tr("&Run"));
    showStatus();
    showSelection();
}

void SweepPanel::showStatus() {
    const SweepState& state = m_job->state();
    QStringList words;
    if (state.running && state.all > 0)
        words << tr("%1 of %2 points").arg(state.done).arg(state.all);
    else if (state.running)
        words << tr("Sweeping all equal-stage plans…");
    if (!state.error.isEmpty()) words << state.error;
    if (state.data && !state.running) {
        const auto& rows = state.data->table().rows;
        const auto fitting = std::ranges::count_if(rows, &SweepRow::fits);
        words << tr("%1 points, %2 fit").arg(rows.size()).arg(fitting);
        if (m_model->rowCount() != state.data->rows())
            words.back() += tr(", %1 shown").arg(m_model->rowCount());
        if (state.stopped) words << tr("Stopped before the end");
        PlanRequest now = m_document.request();
        now.pipeline = m_base.pipeline;
        now.pins = m_base.pins;
        now.mesh = m_base.mesh;
        if (toJson(now) != toJson(m_base)) words << tr("Of an earlier setup: run again");
    }
    m_status->setText(words.join(QLatin1Char('\n')));
    m_status->setVisible(!words.isEmpty());
    m_run->setEnabled(m_document.isOpen());
}

void SweepPanel::applyFilter() {
    m_filterDelay.stop();
    const int before = selected();
    m_selecting = true;
    const bool understood =
        m_model->setFilter({m_filter->text(), m_fitting->isChecked(), m_front->isChecked()});
    m_selecting = false;
    m_chart->setShown(m_model->order());
    m_filter->setStyleSheet(
        understood ? QString() : QStringLiteral("color: %1").arg(Palette::of(this).bad.name()));
    select(before);
    showStatus();
    m_saveDelay.start();
}

// --- selection
// ------------------------------------------------------------------------------------

void SweepPanel::select(int row) {
    m_chart->select(row);
    showSelection();
}

void SweepPanel::showSelection() {
    const int row = selected(), place = m_model->place(row);
    const QModelIndex index = place < 0 ? QModelIndex() : m_model->index(place, 0);
    if (m_table->currentIndex().row() != index.row() || !index.isValid()) {
        m_selecting = true;
        if (index.isValid()) {
            const int column = std::max(0, m_table->currentIndex().column());
            m_table->setCurrentIndex(m_model->index(place, column));
        } else {
            m_table->clearSelection();
            m_table->setCurrentIndex({});
        }
        m_selecting = false;
    }
    const auto& sweep = m_model->sweep();
    m_point->setText(row >= 0 && sweep ? sweep->describe(row) : QString());
    m_open->setEnabled(row >= 0 && sweep && sweep->row(row).error.empty() &&
                       !m_document.isReadOnly());
}

bool SweepPanel::open(int row) {
    const auto& sweep = m_model->sweep();
    if (!sweep || row < 0 || row >= sweep->rows()) return false;
    if (const std::string& error = sweep->row(row).error; !error.empty()) {
        emit message(MessageKind::Warning, text(error));
        return false;
    }
    PlanRequest request;
    if (sweep->axes().empty()) {
        request = m_base;
        request.pipeline = setupOf(sweep->points()[static_cast<std::size_t>(row)]);
    } else {
        request = rowRequest({m_base, sweep->axes()}, static_cast<std::size_t>(row));
    }
    if (!m_document.changeSetup(request, tr("Open plan of the sweep"))) return false;
    emit planOpened();
    return true;
}

// --- files and state
// ------------------------------------------------------------------------------

void SweepPanel::chooseFile(const QString& ending, const QString& filter) {
    QFileDialog dialog(this, tr("Export the sweep"));
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setDefaultSuffix(ending);
    dialog.setNameFilter(filter);
    dialog.selectFile(QStringLiteral("sweep.") + ending);
    if (dialog.exec() == QDialog::Accepted) exportTo(dialog.selectedFiles().value(0));
}

void SweepPanel::exportTo(const QString& file) {
    const auto& sweep = m_model->sweep();
    if (!sweep) return;
    SweepExport wish;
    wish.data = sweep;
    wish.shown = m_model->order();
    wish.measure = m_chart->measure();
    wish.size = m_chart->size().expandedTo({640, 400});
    wish.font = m_chart->font();
    wish.dark = Palette::isDark(palette());
    m_job->write(file, [wish, file] { return exportSweep(wish, file); });
}

void SweepPanel::saveViewStateNow() {
    m_saveDelay.stop();
    if (!m_document.isOpen()) return;
    QJsonObject state = m_form->state();
    state[QStringLiteral("measure")] = m_measure->currentIndex();
    state[QStringLiteral("filter")] = m_filter->text();
    state[QStringLiteral("fitting")] = m_fitting->isChecked();
    state[QStringLiteral("front")] = m_front->isChecked();
    m_document.setViewState(kSweepStateKey,
                            QString::fromUtf8(QJsonDocument(state).toJson(QJsonDocument::Compact)));
}

void SweepPanel::restoreViewState() {
    const QJsonObject state =
        QJsonDocument::fromJson(m_document.viewState(kSweepStateKey).toUtf8()).object();
    if (state.isEmpty()) return;
    m_form->setState(state);
    m_measure->setCurrentIndex(std::clamp(state[QStringLiteral("measure")].toInt(), 0, 2));
    m_filter->setText(state[QStringLiteral("filter")].toString());
    m_fitting->setChecked(state[QStringLiteral("fitting")].toBool());
    m_front->setChecked(state[QStringLiteral("front")].toBool());
    applyFilter();
    m_saveDelay.stop();
}

void SweepPanel::useTheme() {
    m_model->setPalette(Palette::of(this));
}

void SweepPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_chart) useTheme();
}

} // namespace shardlens
