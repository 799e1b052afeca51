// SPDX-License-Identifier: Apache-2.0
// See list_panels.h.
#include "ui/panels/list_panels.h"

#include "core/plan/planner.h"
#include "ui/format.h"
#include "ui/panels/table_style.h"

#include <QEvent>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

namespace shardlens {

PinsPanel::PinsPanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_model(new PinsModel(this)),
      m_table(new QTableView(this)), m_remove(new QPushButton(tr("Remove"), this)) {
    setObjectName(QStringLiteral("pins"));
    m_table->setObjectName(QStringLiteral("pinsTable"));
    m_table->setAccessibleName(tr("Pins"));
    setUpTable(m_table, m_model);
    m_table->installEventFilter(this);
    m_remove->setObjectName(QStringLiteral("removePin"));
    m_remove->setToolTip(tr("Remove the marked pin (Del)"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 6, 8, 8);
    layout->addWidget(m_table);
    layout->addWidget(m_remove, 0, Qt::AlignRight);
    connect(m_remove, &QPushButton::clicked, this, &PinsPanel::removeCurrent);
    connect(m_table, &QTableView::doubleClicked, this, [this](const QModelIndex& index) {
        const Pin& pin = m_document.request().pins.at(static_cast<std::size_t>(index.row()));
        std::string target = pin.target;
        if (target.starts_with("class:")) target.erase(0, 6);
        if (const auto op = m_document.graph()->findOp(target)) {
            emit opRequested(*op);
        } else if (m_document.plan()) {
            const auto ops = pinnedOps(*m_document.plan()->context, pin);
            if (!ops.empty()) emit opRequested(ops.front());
        }
    });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
        m_remove->setEnabled(m_table->currentIndex().isValid() && !m_document.isReadOnly());
    });
    connect(&m_document, &Document::requestChanged, this, &PinsPanel::refresh);
    connect(&m_document, &Document::planChanged, this, &PinsPanel::refresh);
    refresh();
}

void PinsPanel::refresh() {
    std::vector<bool> clashes;
    for (std::size_t i = 0; i < m_document.request().pins.size(); ++i)
        clashes.push_back(m_document.pinClashes(i));
    const int row = m_table->currentIndex().row();
    m_model->setPins(m_document.request().pins, clashes);
    if (row >= 0 && row < m_model->rowCount()) m_table->setCurrentIndex(m_model->index(row, 0));
    m_remove->setEnabled(m_table->currentIndex().isValid() && !m_document.isReadOnly());
}

void PinsPanel::removeCurrent() {
    const QModelIndex index = m_table->currentIndex();
    if (index.isValid()) m_document.removePin(static_cast<std::size_t>(index.row()));
}

bool PinsPanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_table && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Delete) {
        removeCurrent();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void PinsPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) {
        m_model->setPalette(Palette::of(this));
        refresh();
    }
}

IssuesPanel::IssuesPanel(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_model(new IssuesModel(this)),
      m_table(new QTableView(this)) {
    setObjectName(QStringLiteral("issues"));
    m_table->setObjectName(QStringLiteral("issuesTable"));
    m_table->setAccessibleName(tr("Issues"));
    setUpTable(m_table, m_model);
    m_table->setWordWrap(true);
    m_table->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 6, 8, 8);
    layout->addWidget(m_table);
    connect(m_table, &QTableView::activated, this, [this](const QModelIndex& index) {
        const auto op = m_document.graph()->findOp(m_model->at(index.row()).op.toStdString());
        if (op) emit opRequested(*op);
    });
    connect(&m_document, &Document::loaded, this, &IssuesPanel::refresh);
    connect(&m_document, &Document::modelChanged, this, &IssuesPanel::refresh);
    connect(&m_document, &Document::planChanged, this, &IssuesPanel::refresh);
}

void IssuesPanel::refresh() {
    std::vector<Issue> issues;
    if (!m_document.planError().isEmpty()) {
        Issue issue{Issue::Severity::Error, m_document.planError(), {}};
        for (std::size_t i = 0; i < m_document.request().pins.size() && issue.op.isEmpty(); ++i)
            if (m_document.pinClashes(i)) issue.op = text(m_document.request().pins[i].target);
        issues.push_back(issue);
    }
    if (const auto& graph = m_document.graph()) {
        for (const std::string& warning : graph->warnings)
            issues.push_back({Issue::Severity::Warning, text(warning), {}});
        for (const Op& op : graph->ops())
            if (op.kind == OpKind::Opaque)
                issues.push_back({Issue::Severity::Warning,
                                  tr("%1 is not understood: it is kept whole on every device")
                                      .arg(text(op.type)),
                                  text(op.name)});
    }
    m_model->setIssues(issues);
    emit countChanged(m_model->rowCount());
}

void IssuesPanel::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) {
        m_model->setPalette(Palette::of(this));
        refresh();
    }
}

} // namespace shardlens
