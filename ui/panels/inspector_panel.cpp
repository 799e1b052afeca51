// SPDX-License-Identifier: Apache-2.0
// Widgets and behaviour of the inspector; its texts are in inspector_facts.cpp.
#include "ui/panels/inspector_panel.h"

#include "ui/format.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QSplitter>
#include <QTableView>
#include <QTextBrowser>
#include <QVBoxLayout>

namespace shardlens {

InspectorPanel::InspectorPanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_title(new QLabel(this)),
      m_facts(new QTextBrowser(this)), m_model(new AlternativesModel(this)),
      m_table(new QTableView(this)), m_tableNote(new QLabel(this)), m_scope(new QComboBox(this)),
      m_pin(new QPushButton(tr("Pin"), this)), m_unpin(new QPushButton(tr("Unpin"), this)) {
    setObjectName(QStringLiteral("inspector"));
    m_title->setObjectName(QStringLiteral("inspectorTitle"));
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_title->setWordWrap(true);
    QFont bold = font();
    bold.setBold(true);
    m_title->setFont(bold);
    m_facts->setObjectName(QStringLiteral("inspectorFacts"));
    m_facts->setAccessibleName(tr("Facts of the selected op"));
    m_facts->setOpenLinks(false);
    m_facts->setFrameShape(QFrame::NoFrame);
    m_facts->document()->setDocumentMargin(2);
    connect(m_facts, &QTextBrowser::anchorClicked, this, [this](const QUrl& link) {
        if (link.scheme() == QLatin1String("op")) emit opRequested(link.path().toUInt());
    });

    m_table->setObjectName(QStringLiteral("alternatives"));
    m_table->setAccessibleName(tr("Choices of the selected op"));
    m_table->setModel(m_model);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setShowGrid(false);
    m_table->setAlternatingRowColors(true);
    m_table->setTabKeyNavigation(false);
    m_table->setWordWrap(false);
    m_table->installEventFilter(this);
    m_tableNote->setObjectName(QStringLiteral("alternativesNote"));
    m_tableNote->setWordWrap(true);
    connect(m_table, &QTableView::doubleClicked, this, &InspectorPanel::pinCurrent);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            &InspectorPanel::refreshButtons);

    m_scope->setObjectName(QStringLiteral("pinScope"));
    m_scope->setAccessibleName(tr("What a pin holds"));
    m_pin->setObjectName(QStringLiteral("pinButton"));
    m_pin->setToolTip(tr("Hold the op to the marked choice and find the new optimum (P)"));
    m_unpin->setObjectName(QStringLiteral("unpinButton"));
    m_unpin->setToolTip(tr("Let the op free (Del)"));
    connect(m_pin, &QPushButton::clicked, this, &InspectorPanel::pinCurrent);
    connect(m_unpin, &QPushButton::clicked, this,
            [this] { m_document.unpin(m_document.selectedOp()); });

    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_scope, 1);
    buttons->addWidget(m_pin);
    buttons->addWidget(m_unpin);
    auto* lower = new QWidget(this);
    auto* lowerLayout = new QVBoxLayout(lower);
    lowerLayout->setContentsMargins(0, 0, 0, 0);
    lowerLayout->addWidget(m_tableNote);
    lowerLayout->addWidget(m_table, 1);
    lowerLayout->addLayout(buttons);
    auto* splitter = new QSplitter(Qt::Vertical, this);
    splitter->setObjectName(QStringLiteral("inspectorSplitter"));
    splitter->addWidget(m_facts);
    splitter->addWidget(lower);
    splitter->setStretchFactor(0, 1);
    splitter->setStretchFactor(1, 1);
    splitter->setChildrenCollapsible(false);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 6, 8, 8);
    layout->addWidget(m_title);
    layout->addWidget(splitter, 1);

    connect(&m_document, &Document::selectionChanged, this, &InspectorPanel::refresh);
    connect(&m_document, &Document::planChanged, this, &InspectorPanel::refresh);
    connect(&m_document, &Document::loaded, this, &InspectorPanel::refresh);
    connect(&m_document, &Document::alternativesChanged, this,
            &InspectorPanel::refreshAlternatives);
    refresh();
}

QString InspectorPanel::factsText() const {
    return m_facts->toPlainText();
}

void InspectorPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() != QEvent::PaletteChange) return;
    m_model->setPalette(Palette::of(this));
    refresh();
}

bool InspectorPanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_table && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_P || key == Qt::Key_Return || key == Qt::Key_Enter) {
            pinCurrent();
            return true;
        }
        if (key == Qt::Key_Delete) {
            m_document.unpin(m_document.selectedOp());
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

void InspectorPanel::refresh() {
    const OpId op = m_document.selectedOp();
    const int run = m_document.selectedRun();
    const int scroll = m_facts->verticalScrollBar()->value();
    if (op != kNoOp) {
        m_title->setText(text(m_document.graph()->op(op).name));
        m_facts->setHtml(opFacts(op));
    } else if (run >= 0) {
        const bool repeats = m_document.folding()->runs[static_cast<std::size_t>(run)].count > 1;
        m_title->setText(repeats ? tr("Repeated block") : tr("Section"));
        m_facts->setHtml(runFacts(run));
    } else {
        m_title->setText(tr("Nothing selected"));
        m_facts->setHtml(m_document.isOpen()
                             ? tr("Select an op in the graph to see its shapes, its cost and "
                                  "what every other choice would cost.")
                             : tr("Open a model to begin."));
    }
    m_facts->verticalScrollBar()->setValue(scroll);
    const QString scopeBefore = m_scope->currentData().toString();
    m_scope->clear();
    if (op != kNoOp) {
        const Folding& folding = *m_document.folding();
        const OpClass& opClass = folding.classes[folding.classOf[op]];
        m_scope->addItem(opClass.multiplicity > 1
                             ? tr("in block %1 only").arg(folding.instanceOf[op])
                             : tr("this op"),
                         QStringLiteral("one"));
        if (opClass.multiplicity > 1)
            m_scope->addItem(tr("in all %1 blocks").arg(opClass.multiplicity),
                             QStringLiteral("all"));
        m_scope->setCurrentIndex(std::max(0, m_scope->findData(scopeBefore)));
    }
    refreshAlternatives();
}

void InspectorPanel::refreshAlternatives() {
    const OpId op = m_document.selectedOp();
    const auto& alternatives = m_document.alternatives();
    if (op == kNoOp || !alternatives || alternatives->op != op) {
        if (!m_document.alternativesPending() || op == kNoOp) m_model->clear();
        m_tableNote->setText(op == kNoOp ? QString()
                             : m_document.alternativesPending()
                                 ? tr("Pricing the other choices…")
                                 : tr("The choices are priced once there is a plan."));
        refreshButtons();
        return;
    }
    const int legal =
        static_cast<int>(std::count_if(alternatives->list.begin(), alternatives->list.end(),
                                       [](const auto& a) { return a.legal; }));
    m_tableNote->setText(
        !alternatives->error.empty() ? text(alternatives->error)
        : m_document.isStale()
            ? tr("Prices of the previous plan; solving again.")
            : tr("%n legal choice(s); Δ with everything else re-optimised, modelled.", nullptr,
                 legal));
    const auto pins = m_document.pinsOf(op);
    const QString pinned =
        pins.empty() ? QString() : text(m_document.request().pins[pins.back()].choice);
    m_model->setAlternatives(alternatives->list, m_document.costUnit(), pinned);
    m_table->resizeColumnsToContents();
    for (int r = 0; r < m_model->rowCount(); ++r)
        if (m_model->at(r).current) m_table->setCurrentIndex(m_model->index(r, 0));
    refreshButtons();
}

void InspectorPanel::refreshButtons() {
    const QModelIndex row = m_table->currentIndex();
    const bool usable = m_document.isOpen() && !m_document.isReadOnly();
    m_pin->setEnabled(usable && row.isValid() && row.data(AlternativesModel::LegalRole).toBool());
    m_unpin->setEnabled(usable && !m_document.pinsOf(m_document.selectedOp()).empty());
    m_scope->setEnabled(usable && m_scope->count() > 1);
}

void InspectorPanel::pinCurrent() {
    const QModelIndex row = m_table->currentIndex();
    if (!row.isValid() || !row.data(AlternativesModel::LegalRole).toBool()) return;
    m_document.pin(m_document.selectedOp(), row.data(AlternativesModel::ChoiceTextRole).toString(),
                   m_scope->currentData().toString() == QLatin1String("all"));
}

} // namespace shardlens
