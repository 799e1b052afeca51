// SPDX-License-Identifier: Apache-2.0
// See pipeline_service.h. Generation numbers are checked when the worker delivers.
#include "core/plan/pipeline_service.h"

#include "core/error.h"

#include <algorithm>
#include <exception>

namespace shardlens {

namespace {

std::vector<int> stagesByOp(const PipelinePlan& plan) {
    std::vector<int> stages(plan.graph->ops().size(), -1);
    for (const VirtualStage& piece : plan.virtualStages)
        for (int u = piece.first; u <= piece.last; ++u)
            for (const OpId op : plan.units.units.at(static_cast<std::size_t>(u)).ops)
                if (stages[op] < 0) stages[op] = piece.stage;
    return stages;
}

} // namespace

std::pair<int, int> PipelinePlan::devicesOf(int stage) const {
    int first = 0;
    for (int s = 0; s < stage; ++s)
        first += answer.stages[static_cast<std::size_t>(s)].option.devices();
    return {first, first + answer.stages.at(static_cast<std::size_t>(stage)).option.devices()};
}

int PipelinePlan::stageOfDevice(int device) const {
    for (int s = 0; s < stages(); ++s)
        if (const auto [first, end] = devicesOf(s); device >= first && device < end) return s;
    return -1;
}

double PipelinePlan::memoryOf(int stage) const {
    return stageMemory(answer.stages.at(static_cast<std::size_t>(stage)).price, answer.schedule,
                       stages() - 1 - stage, stages(), answer.microBatches);
}

int PipelinePlan::cutOf(int boundary) const {
    const auto piece = std::ranges::find(virtualStages, boundary, &VirtualStage::first);
    if (piece == virtualStages.end()) return boundary;
    return piece->stage == 0 ? -1 : answer.stages[static_cast<std::size_t>(piece->stage)].first;
}

int PipelinePlan::cutFor(int boundary, int unit) const {
    const int cut = cutOf(boundary);
    if (cut < 0) return -1;
    // Chunks in front that grow by k layers each are v k layers of the stage.
    const bool here =
        std::ranges::find(virtualStages, boundary, &VirtualStage::first) != virtualStages.end();
    const int to = here ? cut + (unit - boundary) * answer.schedule.chunks : unit;
    return to >= 1 && to < static_cast<int>(units.units.size()) ? to : -1;
}

bool PipelinePlan::isPinned(int boundary) const {
    if (!request.pipeline) return false;
    const auto& cuts = request.pipeline->cuts;
    return std::ranges::find(cuts, cutOf(boundary)) != cuts.end();
}

double PipelinePlan::bubble() const {
    double busiest = 0;
    for (const PlannedStage& stage : answer.stages)
        busiest = std::max(busiest, answer.microBatches * stage.price.seconds() + stage.price.step);
    return answer.seconds > 0 ? 1 - busiest / answer.seconds : 0;
}

std::shared_ptr<const StagePlan> PipelinePlan::insideOf(int stage) const {
    if (stage < 0) return nullptr;
    const auto& found = inside.at(static_cast<std::size_t>(stage));
    const Graph& sized = *found->plan->context->graph;
    const bool alike = sized.ops().size() == graph->ops().size() &&
                       sized.tensors().size() == graph->tensors().size();
    return alike ? found : nullptr;
}

PipelinePlan makePipelinePlan(const ModelBundle& bundle, const PlanRequest& request,
                              StagePricer& pricer, PipelineAnswer answer) {
    PipelinePlan plan;
    plan.graph = bundle.graph;
    plan.units = cutIntoUnits(*bundle.graph, *bundle.folding);
    plan.request = request;
    plan.document = documentOf(answer, pricer, pipelineRequest(request), bundle.graph->name,
                               request.pipeline ? request.pipeline->planner : "optimum");
    plan.schedule = scheduleOf(answer.schedule, answer.prices(), answer.microBatches);
    plan.virtualStages = virtualStages(plan.units, answer.stages, answer.schedule.chunks);
    plan.stageOfOp = stagesByOp(plan);
    plan.inside = stagePlans(pricer, answer.stages, answer.schedule.chunks);
    plan.answer = std::move(answer);
    return plan;
}

PipelineService::PipelineService(std::function<void()> wake, PipelinePlanner planner)
    : m_wake(std::move(wake)), m_planner(std::move(planner)) {
}

StagePricer& PipelineService::pricerFor(const ModelBundle& bundle,
                                        const std::filesystem::path& file,
                                        const PlanRequest& request) {
    const std::string key = pricingOf(request);
    if (!m_prices || m_prices->graph != bundle.graph || m_prices->key != key)
        m_prices.emplace(Prices{bundle.graph, key, makeStagePricer(file, bundle, request)});
    return m_prices->pricer;
}

std::uint64_t PipelineService::solve(const ModelBundle& bundle, const std::filesystem::path& file,
                                     const PlanRequest& request) {
    std::uint64_t generation = 0;
    {
        const std::lock_guard lock(m_mutex);
        generation = ++m_generation;
        m_result.reset();
    }
    m_lane.submit([this, generation, bundle, file, request](const std::stop_token& stop) {
        PipelineResult result{generation, nullptr, {}, false};
        try {
            StagePricer& pricer = pricerFor(bundle, file, request);
            PipelineAnswer answer = m_planner(pricer, request, stop);
            result.plan = std::make_shared<const PipelinePlan>(
                makePipelinePlan(bundle, request, pricer, std::move(answer)));
        } catch (const Cancelled&) {
            result.cancelled = true;
        } catch (const std::exception& error) {
            result.error = error.what();
        }
        const std::lock_guard lock(m_mutex);
        if (generation != m_generation) return;
        m_result = std::move(result);
        m_wake();
    });
    return generation;
}

void PipelineService::cancel() {
    m_lane.cancel();
    const std::lock_guard lock(m_mutex);
    ++m_generation;
    m_result.reset();
}

std::optional<PipelineResult> PipelineService::takeResult() {
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_result, std::nullopt);
}

} // namespace shardlens
