// SPDX-License-Identifier: Apache-2.0
// See graph_picture.h. A job posts its result with the number of the wish it answers.
#include "ui/jobs/graph_picture.h"

#include "core/error.h"
#include "ui/format.h"

namespace shardlens {

LayoutFunction layoutWith(const std::string& helperExecutable, std::shared_ptr<LayoutCache> cache) {
    return [helperExecutable, cache = std::move(cache)](const LayoutInput& input,
                                                        const std::stop_token& stop) {
        LayouterOptions options;
        options.helperExecutable = helperExecutable;
        options.stop = stop;
        options.cache = cache.get();
        return layoutBoxes(input, options);
    };
}

GraphPicture::GraphPicture(QObject* parent)
    : QObject(parent), m_sceneLane(std::make_unique<BackgroundLane>()),
      m_overlayLane(std::make_unique<BackgroundLane>()) {
}

GraphPicture::~GraphPicture() = default;

void GraphPicture::setModel(std::shared_ptr<const Graph> graph,
                            std::shared_ptr<const Folding> folding) {
    m_graph = std::move(graph);
    m_folding = std::move(folding);
    m_plan = nullptr;
    m_scene = nullptr;
    buildSceneSoon();
}

void GraphPicture::setOptions(SceneOptions options) {
    m_options = std::move(options);
    buildSceneSoon();
}

void GraphPicture::setPlan(std::shared_ptr<const Plan> plan) {
    m_plan = std::move(plan);
    buildOverlaySoon();
}

void GraphPicture::setPipeline(std::shared_ptr<const PipelinePlan> pipeline, int stage) {
    if (pipeline == m_pipeline && stage == m_stage) return;
    m_pipeline = std::move(pipeline);
    m_stage = stage;
    buildOverlaySoon();
}

void GraphPicture::setRepeats(std::vector<std::size_t> repeats) {
    if (repeats == m_repeats) return;
    m_repeats = std::move(repeats);
    buildOverlaySoon();
}

void GraphPicture::clear() {
    m_graph = nullptr;
    m_folding = nullptr;
    m_scene = nullptr;
    m_plan = nullptr;
    m_pipeline = nullptr;
    m_stage = -1;
    ++m_sceneWish;
    ++m_overlayWish;
    m_sceneLane->cancel();
    m_overlayLane->cancel();
    m_sceneBusy = m_overlayBusy = false;
}

void GraphPicture::buildSceneSoon() {
    if (!m_graph || !m_options.layout) return;
    m_sceneBusy = true;
    const std::uint64_t wish = ++m_sceneWish;
    m_sceneLane->submit([this, wish, graph = m_graph, folding = m_folding,
                         options = m_options](const std::stop_token& stop) {
        std::shared_ptr<const GraphScene> scene;
        QString error;
        try {
            scene = buildScene(graph, folding, options, stop);
        } catch (const Cancelled&) {
            return; // a newer wish is on its way
        } catch (const std::exception& failure) {
            error = text(failure.what());
        }
        QMetaObject::invokeMethod(this, [this, wish, scene, error] {
            if (wish != m_sceneWish) return;
            m_sceneBusy = false;
            if (!scene) {
                emit failed(error);
                return;
            }
            m_scene = scene;
            buildOverlaySoon();
        });
    });
}

void GraphPicture::buildOverlaySoon() {
    // While a scene is being built the overlay waits for it: it is asked for again then.
    if (!m_scene || m_sceneBusy) return;
    m_overlayBusy = true;
    const std::uint64_t wish = ++m_overlayWish;
    std::shared_ptr<const Plan> plan = m_plan;
    if (plan && plan->context->graph != m_scene->graph) plan = nullptr;
    m_overlayLane->submit([this, wish, scene = m_scene, plan, repeats = m_repeats,
                           pipeline = m_pipeline, stage = m_stage](const std::stop_token& stop) {
        std::shared_ptr<const GraphOverlay> overlay;
        QString error;
        try {
            overlay = buildOverlay(scene, plan, repeats, stop, pipeline, stage);
        } catch (const Cancelled&) {
            return;
        } catch (const std::exception& failure) {
            error = text(failure.what());
        }
        QMetaObject::invokeMethod(this, [this, wish, overlay, error] {
            if (wish != m_overlayWish) return;
            m_overlayBusy = false;
            if (overlay)
                emit ready(overlay);
            else
                emit failed(error);
        });
    });
}

} // namespace shardlens
