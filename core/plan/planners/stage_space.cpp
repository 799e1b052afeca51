// SPDX-License-Identifier: Apache-2.0
// See stage_space.h.
#include "core/plan/planners/stage_space.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace shardlens {

namespace {

constexpr int kMostStages = 256;
constexpr double kRoomUnit = 1 << 16; // room for micro-batches, as a whole number of parts

/// From quickest to leanest at one ZeRO stage.
constexpr std::array kRecomputation{
    StagePolicy{1, false, 0},  StagePolicy{1, true, 0},    StagePolicy{1, true, 0.25},
    StagePolicy{1, true, 0.5}, StagePolicy{1, true, 0.75}, StagePolicy{1, true, 1},
};

std::vector<std::int64_t> divisors(std::int64_t n) {
    std::vector<std::int64_t> found;
    for (std::int64_t d = 1; d * d <= n; ++d) {
        if (n % d != 0) continue;
        found.push_back(d);
        if (d * d != n) found.push_back(n / d);
    }
    std::ranges::sort(found);
    return found;
}

/// Of powers of two; the first of two axes is at least as long as the second, as the links inside a
/// node are alike.
std::vector<std::vector<AxisSize>> meshesInside(int devicesPerNode, int mostAxes) {
    std::vector<std::vector<AxisSize>> meshes;
    for (int outer = 1; outer <= devicesPerNode; outer *= 2) {
        meshes.push_back({{"tp", outer}});
        if (mostAxes == 1) continue;
        for (int inner = 2; inner <= outer && outer * inner <= devicesPerNode; inner *= 2)
            meshes.push_back({{"tp", outer}, {"tp2", inner}});
    }
    return meshes;
}

} // namespace

StageSpace::StageSpace(StagePricer& pricer, const PipelineRequest& request)
    : m_pricer(pricer), m_request(request) {
    for (const Cluster& pool : pricer.pools()) m_devices += pool.devices();
    std::string reason;
    for (const std::int64_t samples : divisors(request.batch)) {
        if (samples > request.largestSamples) break;
        try {
            const auto model = m_pricer.model(samples);
            if (!m_model) m_model = model;
            if (model->units.units.size() == m_model->units.units.size())
                m_sizes.push_back(samples);
        } catch (const InputError& error) {
            reason = error.what();
        }
    }
    if (!m_model)
        throw PlanError("the model cannot be sized for micro-batches: " + reason, "pipeline",
                        "choose another batch");
    for (const int cut : request.cuts)
        if (cut < 1 || cut >= units())
            throw PlanError(fmt::format("no stage can begin with unit {}", cut), "stage boundary",
                            fmt::format("boundaries are 1 … {}", units() - 1));
    m_cuts = request.cuts;
    std::ranges::sort(m_cuts);
    setGroups();
}

void StageSpace::setGroups() {
    const auto& all = m_model->units.units;
    m_layers.assign(1, 0);
    m_groupEnd.resize(all.size());
    for (const StageUnit& unit : all) m_layers.push_back(m_layers.back() + (unit.run >= 0));
    for (std::size_t u = all.size(); u-- > 0;)
        m_groupEnd[u] = u + 1 < all.size() && all[u + 1].kind == all[u].kind ? m_groupEnd[u + 1]
                                                                             : static_cast<int>(u);
}

DeviceCounts StageSpace::devices() const {
    DeviceCounts counts{};
    for (std::size_t pool = 0; pool < m_pricer.pools().size(); ++pool)
        counts[pool] = m_pricer.pools()[pool].devices();
    return counts;
}

double StageSpace::limit(std::size_t pool) const {
    return m_request.memoryLimitBytes.value_or(m_pricer.pools()[pool].device.memoryBytes);
}

/// Replicas of every mesh inside a node, with every number of samples that divides the micro-batch.
const std::vector<StageOptionInfo>& StageSpace::options(std::int64_t samples) {
    const auto [at, isNew] = m_options.try_emplace(samples);
    std::vector<StageOptionInfo>& found = at->second;
    if (!isNew) return found;
    const auto pools = static_cast<std::uint8_t>(m_pricer.pools().size());
    for (std::uint8_t pool = 0; pool < pools; ++pool)
        for (const std::vector<AxisSize>& axes :
             meshesInside(m_pricer.pools()[pool].devicesPerNode, m_request.insideAxes))
            for (const std::int64_t each : m_sizes) {
                if (samples % each != 0) continue;
                StageOptionInfo option{{pool, axes, each, 0}, static_cast<int>(samples / each)};
                if (option.devices() > m_pricer.pools()[pool].devices() ||
                    !m_pricer.replica(option.replica).fits(option.replicas))
                    continue;
                for (int v = 0; v < static_cast<int>(StagePricer::variants().size()); ++v) {
                    option.replica.variant = v;
                    if (allows(m_request.pins, option)) found.push_back(option);
                }
            }
    return found;
}

// --- bounds -------------------------------------------------------------------------------------

double StageSpace::shareOf(const StageOptionInfo& option) const {
    return option.devices() / m_devices;
}

/// Sum over the units of the least of fill + gate * devices / all devices: see pipeline_problem.h.
/// Few stages of a small micro-batch cannot use all devices.
double StageSpace::boundOf(const std::vector<StageOptionInfo>& options,
                           const ScheduleModel& schedule, int microBatches, int stages) {
    const auto& units = m_model->units;
    std::vector<double> byKind(units.kinds, std::numeric_limits<double>::infinity());
    double most = 0; // devices of a stage
    for (const StageOptionInfo& option : options) most = std::max<double>(most, option.devices());
    const double usable = stages > 0 ? std::min(m_devices, stages * most) : m_devices;
    for (const StageOptionInfo& option : options) {
        if (option.replica.variant != options.front().replica.variant) continue;
        const std::vector<UnitFloor>& floors = m_pricer.floors(option.replica);
        StagePricer::Replica& replica = m_pricer.replica(option.replica);
        for (std::size_t k = 0; k < byKind.size(); ++k)
            byKind[k] = std::min(
                byKind[k],
                shardlens::boundOf(
                    floors[k],
                    replica.leastStep(floors[k].update, floors[k].parameters, option.replicas),
                    schedule, microBatches, option.devices() / usable));
    }
    double sum = 0;
    for (const StageUnit& unit : units.units) sum += byKind[unit.kind];
    return sum;
}

std::vector<PipelineCombination> StageSpace::combinations() {
    std::vector<PipelineCombination> found;
    const DeviceCounts counts = devices();
    const int all = counts[0] + counts[1];
    const auto add = [&](std::int64_t samples, int m, ScheduleModel schedule, int stages,
                         double bound) {
        if (m_request.stages > 0 && stages != m_request.stages) return;
        if (!std::isfinite(bound)) return;
        found.push_back({samples, m, schedule, stages, bound});
    };
    const auto& chain = m_model->units.units;
    const int middle = chain[chain.size() / 2].run;
    const bool single = std::ranges::none_of(
        chain, [&](const StageUnit& u) { return u.run >= 0 && u.run != middle; });
    for (const std::int64_t samples : divisors(m_request.batch)) {
        const int m = static_cast<int>(m_request.batch / samples);
        const std::vector<StageOptionInfo>& choices = options(samples);
        if (choices.empty()) continue;
        if (m_request.microBatches && *m_request.microBatches != m) continue;
        for (const std::string& name : m_request.schedules) {
            const ScheduleModel plain = m_request.schedule(name);
            std::vector<int> chunks{1};
            if (plain.kind == ScheduleKind::Interleaved) chunks = m_request.chunks;
            for (const int v : chunks) {
                const ScheduleModel schedule = m_request.schedule(name, v);
                if (!schedule.needsStages()) {
                    add(samples, m, schedule, m_request.stages,
                        boundOf(choices, schedule, m, m_request.stages));
                    continue;
                }
                if (plain.kind == ScheduleKind::Interleaved && !single) continue;
                for (int p = 2; p <= std::min({units(), all, kMostStages}); ++p)
                    if (all % p == 0 && schedule.runs(p, m))
                        add(samples, m, schedule, p, boundOf(choices, schedule, m, p));
            }
        }
    }
    std::ranges::stable_sort(found, {}, &PipelineCombination::bound);
    return found;
}

// --- candidates ---------------------------------------------------------------------------------

bool StageSpace::fitsChunks(const ScheduleModel& schedule, int first, int last) const {
    if (schedule.chunks == 1) return true;
    const int layers =
        m_layers[static_cast<std::size_t>(last) + 1] - m_layers[static_cast<std::size_t>(first)];
    return layers > 0 && layers % schedule.chunks == 0;
}

void StageSpace::setOptions(const PipelineCombination& combination, Offers& offers) {
    const auto& units = m_model->units.units;
    offers.least.assign(units.size() + 1, std::numeric_limits<double>::infinity());
    offers.least[0] = 0;
    for (const StageOptionInfo& info : options(combination.samples)) {
        Option option{info, &m_pricer.replica(info.replica), {0}, {0}};
        const std::vector<UnitFloor>& floors = m_pricer.floors(info.replica);
        for (std::size_t u = 0; u < units.size(); ++u) {
            const UnitFloor& floor = floors[units[u].kind];
            const double step =
                option.replica->leastStep(floor.update, floor.parameters, info.replicas);
            const auto least = [&](double share) {
                return shardlens::boundOf(floor, step, combination.schedule,
                                          combination.microBatches, share);
            };
            const double shared = least(shareOf(info));
            option.bound.push_back(option.bound.back() + shared);
            option.alone.push_back(option.alone.back() + least(1));
            offers.least[u + 1] = std::min(offers.least[u + 1], shared);
        }
        offers.options.push_back(std::move(option));
    }
    for (std::size_t u = 0; u < units.size(); ++u) offers.least[u + 1] += offers.least[u];
}

/// The least last unit of stretches that only begin here: inside a run, all that end in it have
/// equals that begin with its first unit.
int StageSpace::rowBegin(int first) const {
    const auto f = static_cast<std::size_t>(first);
    return first > 0 && m_groupEnd[f - 1] == m_groupEnd[f] ? m_groupEnd[f] + 1 : first;
}

/// All stages of one option that begin with a unit, but for those that have equals.
void StageSpace::addOffers(const PipelineCombination& combination, int first, std::size_t index,
                           Offers& offers) {
    const Option& option = offers.options[index];
    const auto f = static_cast<std::size_t>(first);
    const double slack = offers.below - offers.least.back();
    for (int last = rowBegin(first); last < units(); ++last) {
        const auto end = static_cast<std::size_t>(last) + 1;
        if (option.alone[end] - option.alone[f] >= offers.below) return;
        const double least = offers.least[end] - offers.least[f];
        if (option.bound[end] - option.bound[f] >= least + slack) continue;
        if (fitsChunks(combination.schedule, first, last))
            addPolicies(combination, first, last, index, offers);
    }
}

void StageSpace::addPolicies(const PipelineCombination& combination, int first, int last,
                             std::size_t index, Offers& offers) {
    const Option& option = offers.options[index];
    const auto f = static_cast<std::size_t>(first), l = static_cast<std::size_t>(last);
    auto& list = offers.lists[f][l - static_cast<std::size_t>(rowBegin(first))];
    const double most = offers.least[l + 1] - offers.least[f] + offers.below - offers.least.back();
    const double m = combination.microBatches, share = shareOf(option.info);
    const StagePins& pins = m_request.pins;
    for (const int zero : pins.zero ? std::vector{*pins.zero} : std::vector{1, 2, 3}) {
        for (StagePolicy policy : kRecomputation) {
            if (!allowsRecompute(pins, policy)) continue;
            policy.zero = zero;
            const StagePrice price = option.replica->price(f, l, option.info.replicas, policy);
            StageCandidate c{combination.schedule.fill(price), combination.schedule.gate(price, m),
                             option.info.devices(), option.info.replica.pool};
            if (c.fill + c.gate * share >= most || c.fill + c.gate >= offers.below)
                break; // the others are slower still
            c.once = price.step;
            const double free = limit(c.pool) - price.resident - price.transient;
            const double room = std::min(free / price.perMicroBatch, m);
            if (room < 1) continue;
            c.mostBehind = static_cast<int>(std::floor(room * kRoomUnit));
            c.id = static_cast<std::uint32_t>(offers.choices.size());
            offers.choices.push_back({index, policy, room});
            list.push_back(c);
            if (room < m) continue;
            if (policy == StagePolicy{zero}) return; // all is kept: more sharding only costs
            break;
        }
        if (option.info.replicas == 1) break;
    }
}

/// Hands the lists over to the problem; stretches of as many equal units share theirs.
void StageSpace::useLists(Offers& offers) const {
    std::vector<std::vector<int>> numbers(offers.lists.size()); ///< -1 = none
    for (std::size_t first = 0; first < offers.lists.size(); ++first)
        for (auto& list : offers.lists[first])
            numbers[first].push_back(
                list.empty() ? -1 : offers.problem.addList(undominated(std::move(list))));
    offers.lists.clear();
    int begin = 0; // of the run
    for (int first = 0; first < units(); ++first) {
        const int row = rowBegin(first);
        if (row == first) begin = first;
        const auto cut = std::ranges::upper_bound(m_cuts, first);
        const int end = cut == m_cuts.end() ? units() : *cut;
        for (int last = first; last < end; ++last) {
            const auto place = static_cast<std::size_t>(last < row ? last - first : last - row);
            const int number = numbers[static_cast<std::size_t>(last < row ? begin : first)][place];
            if (number >= 0) offers.problem.use(first, last, number);
        }
    }
}

StageSpace::Offers& StageSpace::offersOf(const PipelineCombination& combination, double below) {
    auto& known =
        m_offers[{combination.samples, combination.schedule.kind, combination.schedule.chunks}];
    if (known && known->below >= below) return *known;
    known = std::make_unique<Offers>(PipelineProblem(units(), devices()));
    known->below = below;
    known->problem.spare = combination.schedule.spare(combination.microBatches);
    known->problem.spareAhead = combination.schedule.spareAhead(combination.microBatches);
    setOptions(combination, *known);
    for (int first = 0; first < units(); ++first)
        known->lists.emplace_back(static_cast<std::size_t>(units() - rowBegin(first)));
    for (int first = 0; first < units(); ++first)
        for (std::size_t o = 0; o < known->options.size(); ++o)
            addOffers(combination, first, o, *known);
    useLists(*known);
    known->bound = prunePipeline(known->problem, below);
    return *known;
}

const PipelineProblem* StageSpace::problem(PipelineCombination& combination, double below) {
    Offers& offers = *(m_last = &offersOf(combination, below));
    combination.bound = std::max(combination.bound, offers.bound);
    if (combination.bound >= below) return nullptr;
    PipelineProblem& problem = offers.problem;
    problem.mostStages = combination.stages > 0 ? combination.stages : kMostStages;
    const bool exact =
        combination.schedule.kind == ScheduleKind::Interleaved || m_request.stages > 0;
    problem.exactStages = exact ? combination.stages : 0;
    problem.limitBehind([&](const StageCandidate& c) {
        return combination.schedule.mostBehind(offers.choices[c.id].room, combination.stages,
                                               combination.microBatches);
    });
    return &problem;
}

PlannedStage StageSpace::stage(const PipelineStage& stage) {
    const Choice& choice = m_last->choices[stage.candidate.id];
    const Option& option = m_last->options[choice.option];
    return {stage.first, stage.last, option.info, choice.policy,
            option.replica->price(static_cast<std::size_t>(stage.first),
                                  static_cast<std::size_t>(stage.last), option.info.replicas,
                                  choice.policy)};
}

double StageSpace::leastMemory() {
    const DeviceCounts counts = devices();
    double bytes = 0;
    const ReplicaKey key{0, {{"tp", 1}}, m_sizes.front(), 0};
    const StagePrice whole =
        m_pricer.replica(key).price(0, static_cast<std::size_t>(units() - 1), 1, {1, true, 1});
    bytes = whole.resident / (counts[0] + counts[1]);
    return bytes;
}

} // namespace shardlens
