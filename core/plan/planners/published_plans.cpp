// SPDX-License-Identifier: Apache-2.0
// See published_plans.h.
#include "core/plan/planners/published_plans.h"

#include "core/cluster/csv.h"
#include "core/error.h"
#include "core/plan/planners/model_arithmetic.h"
#include "core/plan/planners/published_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

namespace shardlens {

namespace {

constexpr double kMixtureFactor = 8; // of the hidden size, in Alpa's mixtures
// Passes over each product: forward, two in the backward pass, and the forward once more where
// layers are recomputed, which Alpa does for transformers.
constexpr double kPassesRecomputed = 4, kPasses = 3;

class RowReader {
public:
    RowReader(const CsvTable& table, const CsvTable::Row& row) : m_table(table), m_row(row) {}

    const std::string& text(std::string_view title) const {
        return m_row.fields[m_table.column(title)];
    }

    template <typename Number>
    Number number(std::string_view title) const {
        return parsed<Number>(text(title));
    }

    std::vector<std::string_view> list(std::string_view title) const {
        std::vector<std::string_view> parts;
        std::string_view rest = text(title);
        for (std::size_t at; (at = rest.find(';')) != std::string_view::npos;
             rest.remove_prefix(at + 1))
            parts.push_back(rest.substr(0, at));
        parts.push_back(rest);
        return parts;
    }

    /// "AxB"
    std::pair<int, int> sizes(std::string_view text) const {
        const std::size_t at = text.find('x');
        if (at == std::string_view::npos) refuse(text);
        return {parsed<int>(text.substr(0, at)), parsed<int>(text.substr(at + 1))};
    }

    template <typename Number>
    Number parsed(std::string_view text) const {
        Number value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size() || value < 0) refuse(text);
        return value;
    }

    [[noreturn]] void refuse(std::string_view what) const {
        throw InputError(fmt::format("\"{}\" cannot be read here", what), m_table.where(m_row),
                         "write numbers as digits, meshes as 2x4, lists parted by ;");
    }

private:
    const CsvTable& m_table;
    const CsvTable::Row& m_row;
};

std::vector<PublishedStage> stagesOf(const RowReader& row) {
    const auto layers = row.list("stage_layers");
    const auto physical = row.list("physical"), logical = row.list("logical");
    for (const auto& list : {physical, logical})
        if (list.size() != 1 && list.size() != layers.size()) row.refuse(list.front());
    const auto entry = [](const auto& list, std::size_t i) {
        return list[list.size() == 1 ? 0 : i];
    };
    std::vector<PublishedStage> stages;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto [hosts, devices] = row.sizes(entry(physical, i));
        const auto [data, model] = row.sizes(entry(logical, i));
        stages.push_back({row.parsed<int>(layers[i]),
                          {hosts, devices},
                          {data, model, row.text("free") != "yes"}});
    }
    return stages;
}

TransformerSizes transformer(const PublishedPlan& plan) {
    return {.hidden = plan.hidden,
            .layers = static_cast<double>(plan.size),
            .vocabulary = plan.vocabulary,
            .sequence = plan.sequence,
            .experts = static_cast<double>(plan.experts),
            .mlpFactor = plan.experts > 0 ? kMixtureFactor : 4};
}

bool isTransformer(const PublishedPlan& plan) {
    return plan.family != "wrn";
}

} // namespace

int PublishedPlan::layers() const {
    return std::accumulate(stages.begin(), stages.end(), 0,
                           [](int sum, const PublishedStage& s) { return sum + s.layers; });
}

std::vector<PublishedPlan> parsePublishedPlans(std::string_view csv) {
    const CsvTable table = parseCsv(csv, "alpa-osdi22.csv");
    std::vector<PublishedPlan> plans;
    for (const CsvTable::Row& line : table.rows) {
        const RowReader row(table, line);
        PublishedPlan plan;
        plan.family = row.text("family");
        if (plan.family != "gpt" && plan.family != "moe" && plan.family != "wrn")
            row.refuse(plan.family);
        plan.name = row.text("name");
        plan.hidden = row.number<double>("hidden");
        plan.size = row.number<int>("size");
        plan.experts = row.number<int>("experts");
        plan.width = row.number<double>("width");
        plan.vocabulary = row.number<double>("vocabulary");
        plan.sequence = row.number<double>("sequence");
        plan.batch = row.number<int>("batch");
        plan.devices = row.number<int>("devices");
        plan.microBatches = row.number<int>("micro_batches");
        plan.stages = stagesOf(row);
        plans.push_back(std::move(plan));
    }
    return plans;
}

const std::vector<PublishedPlan>& alpaPlans() {
    static const std::vector<PublishedPlan> plans = parsePublishedPlans(kAlpaPlansCsv);
    return plans;
}

std::vector<std::string> problemsOf(const PublishedPlan& plan, int devicesPerHost) {
    std::vector<std::string> problems;
    std::vector<Submesh> shapes;
    int devices = 0;
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
        const PublishedStage& stage = plan.stages[i];
        if (stage.layers < 1) problems.push_back(fmt::format("stage {} has no layer", i));
        if (stage.logical.data * stage.logical.model != stage.physical.devices())
            problems.push_back(fmt::format("stage {} lays {} x {} over {} devices", i,
                                           stage.logical.data, stage.logical.model,
                                           stage.physical.devices()));
        else if (plan.microBatches > 0 && plan.batch / plan.microBatches % stage.logical.data != 0)
            problems.push_back(fmt::format("stage {} splits a micro-batch of {} over {}", i,
                                           plan.batch / plan.microBatches, stage.logical.data));
        shapes.push_back(stage.physical);
        devices += stage.physical.devices();
    }
    if (devices != plan.devices)
        problems.push_back(
            fmt::format("the stages have {} devices, the cluster {}", devices, plan.devices));
    if (plan.microBatches < 1 || plan.batch % plan.microBatches != 0)
        problems.push_back(fmt::format("{} micro-batches do not divide a batch of {}",
                                       plan.microBatches, plan.batch));
    try {
        const int perHost = std::min(devicesPerHost, std::max(plan.devices, 1));
        placeSubmeshes(std::max(plan.devices / perHost, 1), perHost, shapes);
    } catch (const PlanError& error) {
        problems.emplace_back(error.what());
    }
    return problems;
}

std::vector<double> workOf(const PublishedPlan& plan) {
    const std::vector<double> parts =
        isTransformer(plan) ? layerFlops(transformer(plan))
                            : blockFlops({plan.size, plan.hidden, plan.width, plan.sequence, 1024});
    const auto layers = static_cast<std::size_t>(plan.layers());
    if (layers == 0 || layers > parts.size())
        throw PlanError(fmt::format("{} layers out of {} parts", layers, parts.size()),
                        fmt::format("published plan {} {}", plan.family, plan.name));
    std::vector<double> work(layers, 0);
    for (std::size_t i = 0; i < parts.size(); ++i) work[i * layers / parts.size()] += parts[i];
    if (isTransformer(plan)) work.back() += headFlops(transformer(plan));
    return work;
}

PublishedPrice priceOf(const PublishedPlan& plan, double deviceFlops) {
    const std::vector<double> work = workOf(plan);
    const double samples = static_cast<double>(plan.batch) / plan.microBatches;
    const double passes = isTransformer(plan) ? kPassesRecomputed : kPasses;
    PublishedPrice price;
    std::size_t layer = 0;
    double sum = 0, longest = 0;
    for (const PublishedStage& stage : plan.stages) {
        double flops = 0;
        for (int i = 0; i < stage.layers; ++i) flops += work[layer++];
        const double seconds = passes * samples * flops / (stage.physical.devices() * deviceFlops);
        price.stageSeconds.push_back(seconds);
        sum += seconds;
        longest = std::max(longest, seconds);
        price.flops += passes * plan.batch * flops;
    }
    price.seconds = sum + (plan.microBatches - 1) * longest;
    return price;
}

} // namespace shardlens
