// SPDX-License-Identifier: Apache-2.0
// Joins the document to the graph view: which blocks are open and which repeat of each is looked
// at, selection with its history, search, colours, the context menu, stage boundaries, and all of
// it kept as view state in the session.
#pragma once

#include "ui/document.h"
#include "ui/jobs/graph_picture.h"
#include "ui/views/graph_view.h"

#include <QJsonObject>
#include <QTimer>

class QMenu;

namespace shardlens {

class Legend;

class GraphController : public QObject {
    Q_OBJECT

public:
    GraphController(Document& document, GraphView& view, Legend& legend, LayoutFunction layout,
                    QObject* parent = nullptr);

    /// Selects an op and brings it into sight, opening its block at its repeat if need be.
    void showOp(OpId op);
    void toggleRun(int run);
    void openRun(int run);
    bool isOpen(int run) const { return m_open.contains(run); }
    /// Looks at another repeat; a selected op moves along.
    void setRepeat(int run, std::size_t repeat);
    std::size_t repeatOf(int run) const;

    void setParametersShown(bool shown);
    bool parametersShown() const { return m_parameters; }
    void setColourMode(ColourMode mode);

    void search(const QString& typed);
    void nextMatch(int step = 1);

    void goToProducer();
    void goToConsumer();
    void goBack();
    void goForward();

    /// Pins the selected op to what the plan chose for it.
    void pinSelected();
    void unpinSelected();
    void freeBoundaries(); ///< all that are pinned
    void copyName() const;
    /// The context menu of an op, or of a run. Owned by the caller.
    QMenu* makeMenu(OpId op, int run);
    QMenu* makeBoundaryMenu(int boundary); ///< of a stage; likewise

    bool busy() const { return m_picture.busy() || m_searching || m_reveal != kNoOp; }
    void saveViewStateNow();

signals:
    void busyChanged(bool busy);
    void matchesChanged(int current, int count);
    void colourModeChanged(shardlens::ColourMode mode);
    void parametersShownChanged(bool shown);
    void pictureReady();
    void failed(const QString& text);

private:
    void loadModel(bool restore);
    void restoreViewState();
    QJsonObject stateJson() const;
    void requestScene();
    void takeOverlay(std::shared_ptr<const GraphOverlay> overlay);
    void takeSelection();
    void connectStages();
    void takePipeline();
    void takeMatches(std::uint64_t wish, const std::shared_ptr<std::vector<OpId>>& found);
    void markMatches();
    void saveSoon() { m_saveDelay.start(); }
    void addPinChoices(QMenu* menu, OpId op);

    Document& m_document;
    GraphView& m_view;
    Legend& m_legend;
    LayoutFunction m_layout;
    GraphPicture m_picture;
    std::set<int> m_open;
    std::vector<std::size_t> m_repeats;
    bool m_parameters = true, m_roomForStages = false;
    OpId m_reveal = kNoOp; ///< shown once its picture is there
    std::optional<QPointF> m_restoreCentre;
    double m_restoreZoom = 1;
    std::vector<OpId> m_history;
    std::size_t m_historyAt = 0;
    bool m_walkingHistory = false;
    std::vector<OpId> m_matches;
    int m_match = -1;
    bool m_searching = false;
    std::uint64_t m_searchWish = 0;
    QTimer m_saveDelay;
    std::unique_ptr<BackgroundLane> m_searchLane; // last: joined first
};

/// Ops whose name, kind or type holds all words typed (case does not count): the first match of
/// each class, in model order.
std::vector<OpId> findOps(const Graph& graph, const Folding& folding, const std::string& typed,
                          const std::stop_token& stop = {});

} // namespace shardlens
