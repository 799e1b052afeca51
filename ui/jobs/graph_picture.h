// SPDX-License-Identifier: Apache-2.0
// Makes what the graph view shows, in the background: a lane builds scenes (measuring and layout),
// another builds overlays, so that a re-solve never starts a layout anew. A newer wish supersedes
// an older one; ready() delivers pictures on the owner's thread.
#pragma once

#include "core/layout/layouter.h"
#include "core/plan/background_lane.h"
#include "ui/views/graph_overlay.h"

#include <QObject>

namespace shardlens {

/// The layout function of the program: Graphviz in the helper for small groups where there is a
/// helper (the program's own file, or empty), our own layered layout for all else.
LayoutFunction layoutWith(const std::string& helperExecutable, std::shared_ptr<LayoutCache> cache);

class GraphPicture : public QObject {
    Q_OBJECT

public:
    explicit GraphPicture(QObject* parent = nullptr);
    ~GraphPicture() override;

    void setModel(std::shared_ptr<const Graph> graph, std::shared_ptr<const Folding> folding);
    void setOptions(SceneOptions options);
    void setPlan(std::shared_ptr<const Plan> plan);
    /// @param stage whose plan is shown in place of that of one mesh; -1 for none
    void setPipeline(std::shared_ptr<const PipelinePlan> pipeline, int stage);
    void setRepeats(std::vector<std::size_t> repeats);
    void clear();
    bool busy() const { return m_sceneBusy || m_overlayBusy; }

signals:
    void ready(std::shared_ptr<const shardlens::GraphOverlay> overlay);
    void failed(const QString& text);

private:
    void buildSceneSoon();
    void buildOverlaySoon();

    std::shared_ptr<const Graph> m_graph;
    std::shared_ptr<const Folding> m_folding;
    SceneOptions m_options;
    std::shared_ptr<const GraphScene> m_scene;
    std::shared_ptr<const Plan> m_plan;
    std::shared_ptr<const PipelinePlan> m_pipeline;
    int m_stage = -1;
    std::vector<std::size_t> m_repeats;
    std::uint64_t m_sceneWish = 0, m_overlayWish = 0;
    bool m_sceneBusy = false, m_overlayBusy = false;
    std::unique_ptr<BackgroundLane> m_sceneLane, m_overlayLane; // last: joined first
};

} // namespace shardlens
