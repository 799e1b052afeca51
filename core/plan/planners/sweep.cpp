// SPDX-License-Identifier: Apache-2.0
// See sweep.h.
#include "core/plan/planners/sweep.h"

#include "core/error.h"
#include "core/plan/planners/pipeline_job.h"
#include "core/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>

namespace shardlens {

namespace {

constexpr std::size_t kMostValues = 1000;

struct ParameterInfo {
    std::string_view name, title;
    std::int64_t least = 1, most = 1 << 20; ///< most 0: a word of `words`
    std::array<std::string_view, 4> words{};
};

constexpr std::array<ParameterInfo, kSweepParameters> kParameters{{
    {"nodes", "Nodes", 1, 1 << 16},
    {"batch", "Batch"},
    {"sequence", "Sequence", 1, 1 << 24},
    {"micro_batches", "Micro-batches"},
    {"stages", "Stages"},
    {"tp", "Tensor degree", 1, 1 << 10},
    {"cp", "Context degree", 1, 1 << 10},
    {"ep", "Expert degree", 1, 1 << 10},
    {"sp", "Sequence parallelism", 0, 0, {"off", "on"}},
    {"dp", "Data degree"},
    {"schedule", "Schedule", 0, 0, {"gpipe", "1f1b", "interleaved", "zb-h1"}},
    {"zero", "ZeRO stage", 0, 3},
    {"recompute", "Recomputation", 0, 0, {"none", "selective", "full"}},
    {"memory_gib", "Memory limit, GiB"},
}};

const ParameterInfo& infoOf(SweepParameter parameter) {
    return kParameters[static_cast<std::size_t>(parameter)];
}

[[noreturn]] void refuseValue(const ParameterInfo& info, std::string_view value) {
    std::string known;
    if (info.most > 0)
        known = fmt::format("use whole numbers from {} to {}, as in 1,2,4 or 1..64", info.least,
                            info.most);
    else
        for (const std::string_view word : info.words)
            if (!word.empty()) known += fmt::format("{}{}", known.empty() ? "use " : ", ", word);
    throw InputError(fmt::format("'{}' is no value of {}", value, info.name), "sweep", known);
}

std::string_view withoutBlanks(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

std::int64_t parameterValue(const ParameterInfo& info, std::string_view text,
                            std::string_view whole) {
    std::int64_t value = 0;
    text = withoutBlanks(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < info.least ||
        value > info.most)
        refuseValue(info, whole);
    return value;
}

/// "a..b": powers of two times a; "a..b:s": steps of s.
void addRange(const ParameterInfo& info, std::string_view text, std::vector<std::string>& values) {
    const std::size_t dots = text.find(".."), colon = text.find(':', dots);
    const std::int64_t first = parameterValue(info, text.substr(0, dots), text);
    const std::int64_t last =
        parameterValue(info, text.substr(dots + 2, std::min(colon, text.size()) - dots - 2), text);
    const std::int64_t step =
        colon == std::string_view::npos
            ? 0
            : parameterValue({info.name, info.title, 1, info.most}, text.substr(colon + 1), text);
    if (last < first || (step == 0 && first < 1)) refuseValue(info, text);
    for (std::int64_t n = first; n <= last && values.size() <= kMostValues;
         n = step == 0 ? 2 * n : n + step)
        values.push_back(std::to_string(n));
}

SweepValue valueOf(SweepParameter parameter, const std::string& text) {
    if (infoOf(parameter).most == 0) return text;
    return parameterValue(infoOf(parameter), text, text);
}

void set(PlanRequest& request, SweepParameter parameter, const std::string& text) {
    const SweepValue value = valueOf(parameter, text);
    const std::int64_t number = std::holds_alternative<std::int64_t>(value)
                                    ? std::get<std::int64_t>(value)
                                    : std::int64_t{0};
    PipelineSetup& setup = *request.pipeline;
    switch (parameter) {
    case SweepParameter::Nodes:
        request.nodes = static_cast<int>(number);
        request.mesh.clear(); // one for the other number of devices
        break;
    case SweepParameter::Batch:
        request.batch = number;
        break;
    case SweepParameter::Sequence:
        request.sequence = number;
        break;
    case SweepParameter::MicroBatches:
        setup.microBatches = static_cast<int>(number);
        break;
    case SweepParameter::Stages:
        setup.stages = static_cast<int>(number);
        break;
    case SweepParameter::Tensor:
        setup.pins.tensor = static_cast<int>(number);
        break;
    case SweepParameter::Context:
        setup.pins.context = static_cast<int>(number);
        break;
    case SweepParameter::Expert:
        setup.pins.expert = static_cast<int>(number);
        break;
    case SweepParameter::SequenceParallel:
        setup.pins.sequenceParallel = text == "on";
        break;
    case SweepParameter::Data:
        setup.pins.data = static_cast<int>(number);
        break;
    case SweepParameter::Schedule:
        setup.schedules = {text};
        break;
    case SweepParameter::Zero:
        setup.pins.zero = static_cast<int>(number);
        break;
    case SweepParameter::Recompute:
        setup.pins.recompute = text == "none"        ? Recompute::None
                               : text == "selective" ? Recompute::Selective
                                                     : Recompute::Full;
        break;
    case SweepParameter::MemoryLimit:
        request.memoryLimitBytes = static_cast<double>(number) * kGiB;
        break;
    }
}

std::size_t countRows(const SweepRequest& request) {
    std::size_t count = 1;
    for (const SweepAxis& axis : request.axes) count *= axis.values.size();
    return count;
}

/// Which value of each axis a row has.
std::vector<std::size_t> placeOfRow(const SweepRequest& request, std::size_t row) {
    std::vector<std::size_t> place(request.axes.size());
    for (std::size_t a = place.size(); a-- > 0;) {
        place[a] = row % request.axes[a].values.size();
        row /= request.axes[a].values.size();
    }
    return place;
}

double sweepLimit(const PlanRequest& request) {
    return request.memoryLimitBytes.value_or(
        clusterByName(request.cluster, request.nodes, request.devicesPerNode).device.memoryBytes);
}

void markSweepFront(std::vector<SweepRow>& rows) {
    std::vector<SweepRow*> order;
    for (SweepRow& row : rows)
        if (row.error.empty()) order.push_back(&row);
    std::ranges::stable_sort(
        order, {}, [](const SweepRow* row) { return std::pair(row->seconds, row->memory); });
    double leanest = std::numeric_limits<double>::infinity();
    for (SweepRow* row : order) {
        row->front = row->memory < leanest;
        leanest = std::min(leanest, row->memory);
    }
}

/// Pricers of the settings that prices depend on; most axes leave them alone.
class Prices {
public:
    Prices(const SweepSource& model, const PlanRequest& base) : m_model(model), m_base(base) {}

    StagePricer& of(const PlanRequest& request) {
        const std::string key = pricingOf(request);
        if (const auto at = m_known.find(key); at != m_known.end()) return at->second;
        PlanRequest sized = request;
        sized.batch = m_base.batch;
        const bool same = sizingOf(sized) == sizingOf(m_base);
        const ModelBundle bundle =
            same ? m_model.bundle : loadModel(m_model.file, importOptions(sized));
        return m_known.emplace(key, makeStagePricer(m_model.file, bundle, sized)).first->second;
    }

private:
    const SweepSource& m_model;
    const PlanRequest& m_base;
    std::map<std::string, StagePricer> m_known;
};

SweepRow planRow(Prices& prices, const SweepRequest& request, std::size_t index,
                 const std::stop_token& stop) {
    SweepRow row;
    const std::vector<std::size_t> place = placeOfRow(request, index);
    for (std::size_t a = 0; a < place.size(); ++a)
        row.values.push_back(valueOf(request.axes[a].parameter, request.axes[a].values[place[a]]));
    try {
        const PlanRequest wanted = rowRequest(request, index);
        const PipelineAnswer answer = planJob(prices.of(wanted), wanted, stop);
        row.seconds = answer.seconds;
        row.memory = answer.peakMemory;
        row.bubble = answer.bubble();
        row.fits = true;
    } catch (const Cancelled&) {
        throw;
    } catch (const Error& error) {
        row.error = error.what();
    }
    return row;
}

} // namespace

std::string_view nameOf(SweepParameter parameter) {
    return infoOf(parameter).name;
}

std::string_view titleOf(SweepParameter parameter) {
    return infoOf(parameter).title;
}

std::string wordOf(const SweepValue& value) {
    return std::holds_alternative<std::string>(value)
               ? std::get<std::string>(value)
               : std::to_string(std::get<std::int64_t>(value));
}

std::vector<std::string> sweepValues(SweepParameter parameter, std::string_view text) {
    const ParameterInfo& info = infoOf(parameter);
    std::vector<std::string> values;
    for (std::string_view rest = text;;) {
        const std::size_t comma = rest.find(',');
        const std::string_view part = withoutBlanks(rest.substr(0, comma));
        if (info.most == 0) {
            if (part.empty() || std::ranges::find(info.words, part) == info.words.end())
                refuseValue(info, part);
            values.emplace_back(part);
        } else if (part.find("..") != std::string_view::npos) {
            addRange(info, part, values);
        } else {
            values.push_back(std::to_string(parameterValue(info, part, part)));
        }
        if (values.size() > kMostValues)
            throw InputError(fmt::format("more than {} values of {}", kMostValues, info.name),
                             "sweep", "use fewer");
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    return values;
}

SweepAxis sweepAxis(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view name = withoutBlanks(text.substr(0, equals));
    const auto at = std::ranges::find(kParameters, name, &ParameterInfo::name);
    if (equals == std::string_view::npos || at == kParameters.end()) {
        std::vector<std::string_view> names;
        for (const ParameterInfo& info : kParameters) names.push_back(info.name);
        throw InputError(
            fmt::format("'{}' cannot be swept", text), "sweep",
            fmt::format("write it as in nodes=1,2,4; there are {}", fmt::join(names, ", ")));
    }
    const auto parameter = static_cast<SweepParameter>(at - kParameters.begin());
    return {parameter, sweepValues(parameter, text.substr(equals + 1))};
}

PlanRequest rowRequest(const SweepRequest& request, std::size_t row) {
    PlanRequest wanted = request.base;
    if (!wanted.pipeline) {
        wanted.pipeline.emplace();
        wanted.pipeline->planner = "megatron";
    }
    const std::vector<std::size_t> place = placeOfRow(request, row);
    for (std::size_t a = 0; a < place.size(); ++a)
        set(wanted, request.axes[a].parameter, request.axes[a].values[place[a]]);
    return wanted;
}

SweepTable runSweep(const SweepSource& model, const SweepRequest& request,
                    const SweepProgress& progress, std::stop_token stop) {
    if (request.axes.empty() || request.axes.size() > 2)
        throw PlanError(fmt::format("{} settings cannot be swept at once", request.axes.size()),
                        "sweep", "give one or two");
    if (request.axes.size() == 2 && request.axes[0].parameter == request.axes[1].parameter)
        throw PlanError(fmt::format("'{}' is swept twice", nameOf(request.axes[0].parameter)),
                        "sweep", "give two different settings");
    SweepTable table;
    table.memoryLimit = sweepLimit(request.base);
    for (const SweepAxis& axis : request.axes) table.settings.emplace_back(nameOf(axis.parameter));
    Prices prices(model, request.base);
    const std::size_t all = countRows(request);
    for (std::size_t i = 0; i < all; ++i) {
        if (stop.stop_requested()) throw Cancelled();
        table.rows.push_back(planRow(prices, request, i, stop));
        if (progress) progress(table.rows.back(), i, all);
    }
    markSweepFront(table.rows);
    return table;
}

GridSweep runGrid(const SweepSource& model, const PlanRequest& base, std::stop_token stop) {
    GridSweep sweep;
    StagePricer pricer = makeStagePricer(model.file, model.bundle, base);
    sweep.points = megatronGrid(pricer, pipelineRequest(base), std::move(stop));
    SweepTable& table = sweep.table;
    table.memoryLimit = sweepLimit(base);
    table.settings = {"tp", "sp", "cp", "pp",       "vpp",  "ep",
                      "dp", "mb", "m",  "schedule", "zero", "recompute"};
    table.rows.reserve(sweep.points.size());
    for (const GridPoint& p : sweep.points) {
        SweepRow row{.seconds = p.seconds,
                     .memory = p.memory,
                     .bubble = p.bubble,
                     .fits = p.fits,
                     .front = p.front};
        row.values = {p.tensor,
                      p.sequenceParallel ? "on" : "off",
                      p.context,
                      p.pipeline,
                      p.schedule.chunks,
                      p.expert,
                      p.data,
                      p.samples,
                      p.microBatches,
                      std::string(p.schedule.name()),
                      p.policy.zero,
                      std::string(recomputeText(p.policy))};
        table.rows.push_back(std::move(row));
    }
    return sweep;
}

} // namespace shardlens
