// SPDX-License-Identifier: Apache-2.0
// The event engine against longest paths that Boost.Graph orders, and against what every timeline
// must satisfy: idle times add up, memory comes back, rules waste nothing.
#include "core/schedule/catalogue.h"
#include "core/schedule/rule_error.h"
#include "tests/core/schedule/random_schedule.h"
#include "tests/core/schedule/spec_of.h"
#include "tests/test_program.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>

#include <QTest>

#include <cmath>
#include <functional>

namespace tst_schedule_engine {

using namespace shardlens;
using namespace shardlens::schedule;
using test::specOf;

namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                    boost::property<boost::edge_weight_t, double>>;

bool same(double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b));
}

/// Start times by longest paths from tasks that wait for nothing; edge weights are from start to
/// start.
std::vector<double> longestPaths(const Graph& graph) {
    std::vector<Graph::vertex_descriptor> order;
    boost::topological_sort(graph, std::back_inserter(order)); // reversed
    std::vector<double> start(boost::num_vertices(graph), 0);
    const auto weight = boost::get(boost::edge_weight, graph);
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
        for (auto [e, last] = boost::out_edges(*it, graph); e != last; ++e) {
            const auto other = boost::target(*e, graph);
            start[other] = std::max(start[other], start[*it] + weight[*e]);
        }
    }
    return start;
}

/// The graph of a program whose queues are all listed; joint tasks are one vertex.
Graph graphOf(const Program& program) {
    Graph graph(program.tasks.size());
    const auto leader = [&](TaskId id) { return program.tasks[id].joined ? id - 1 : id; };
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        for (const Dependency& other : program.dependenciesOf(id)) {
            boost::add_edge(leader(other.task), leader(id),
                            program.duration[other.task] + program.lags[other.lag], graph);
        }
    }
    for (const Queue& queue : program.queues) {
        if (queue.stream == Stream::None) continue;
        for (TaskId id = queue.begin + 1; id < queue.end; ++id) {
            if (leader(id) == id) {
                boost::add_edge(leader(id - 1), id, program.duration[id - 1], graph);
            }
        }
    }
    return graph;
}

void checkLongestPaths(const Program& program, const Timeline& timeline) {
    const std::vector<double> start = longestPaths(graphOf(program));
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        const TaskId leader = program.tasks[id].joined ? id - 1 : id;
        QVERIFY(same(timeline.start[id], start[leader]));
        QVERIFY(same(timeline.end[id], start[leader] + program.duration[id]));
    }
}

/// Idle and busy times of each device fill the step without overlap.
void checkIdle(const Schedule& s) {
    for (std::uint32_t d = 0; d < s.program.devices; ++d) {
        const Queue& queue = s.program.queues[d];
        std::vector<std::pair<double, double>> spans;
        for (TaskId id = queue.begin; id < queue.end; ++id) {
            const bool counts = !s.program.tasks[id].joined && s.program.duration[id] > 0;
            if (counts) spans.push_back({s.timeline.start[id], s.timeline.end[id]});
        }
        double sum = 0;
        for (const Idle& idle : s.account.idle) {
            if (idle.device != d) continue;
            QVERIFY(idle.end > idle.begin);
            sum += idle.end - idle.begin;
            spans.push_back({idle.begin, idle.end});
        }
        const DeviceUse& use = s.account.devices[d];
        QVERIFY(same(sum, s.timeline.makespan - use.busy));
        double byCause = 0;
        for (const double each : use.idle) byCause += each;
        QVERIFY(same(byCause, sum));
        std::ranges::sort(spans);
        double free = 0;
        for (const auto& [begin, end] : spans) {
            QVERIFY(same(begin, free));
            free = end;
        }
        QVERIFY(same(free, s.timeline.makespan));
    }
}

void checkMemory(const Schedule& s) {
    for (std::uint32_t d = 0; d < s.program.devices; ++d) {
        const auto curve = memoryCurve(s.program, s.timeline, d);
        double time = -1, peak = 0;
        for (const MemoryPoint& point : curve) {
            QVERIFY(point.time > time);
            QVERIFY(point.memory >= -1e-9);
            time = point.time;
            peak = std::max(peak, point.memory);
        }
        QVERIFY(same(curve.front().memory + 1, curve.back().memory + 1) || curve.front().time == 0);
        QVERIFY(std::abs(curve.back().memory - s.program.staticMemory[d]) <= 1e-9);
        QCOMPARE(peak, s.account.devices[d].peakMemory);
    }
}

/// A spec that every schedule takes, with odd times so that nothing meets by accident.
ScheduleSpec commonSpec(std::string_view name) {
    ScheduleSpec spec = specOf(name, 4, 8);
    spec.times = {{.forward = 1.1, .input = 1.3, .weight = 0.7, .update = 0.5, .allReduce = 0.25}};
    spec.transfer = {0.15};
    spec.embedTime = 0.4;
    spec.auxTime = 0.2;
    spec.jointFactor = 0.9;
    spec.freedByInput = 0.4;
    spec.staticMemory = {3};
    if (name == "interleaved") spec.chunks = 2;
    if (name == "terapipe") spec.slices = {0.4, 0.35, 0.25};
    return spec;
}

} // namespace

class TestScheduleEngine : public QObject {
    Q_OBJECT

private slots:
    void randomOrdersAreLongestPaths();
    void schedulesAreLongestPaths_data();
    void schedulesAreLongestPaths();
    void rulesWasteNothing_data();
    void rulesWasteNothing();
    void pipelinesDoNotStopEachOther();
    void randomSpecs();
};

void TestScheduleEngine::randomOrdersAreLongestPaths() {
    std::mt19937 random(7);
    for (int round = 0; round < 400; ++round) {
        const bool split = round % 2 == 1;
        const test::RandomSchedule r = test::randomSchedule(random, split);
        const Schedule s = makeSchedule(r.spec, r.orders);

        // An independent graph from the definition of a pipeline and the lists.
        std::map<test::Key, std::size_t> vertex;
        std::vector<Task> tasks;
        for (const auto& list : r.orders.lists) {
            for (const Task& task : list) {
                vertex[test::keyOf(task)] = tasks.size();
                tasks.push_back(task);
            }
        }
        const auto duration = [&](const Task& task) {
            const StageTimes& t = r.spec.times[task.stage];
            const double all = task.pass == Pass::Forward      ? t.forward
                               : task.pass == Pass::InputGrad  ? t.input
                               : task.pass == Pass::WeightGrad ? t.weight
                                                               : t.input + t.weight;
            return all / r.orders.slices;
        };
        Graph graph(tasks.size());
        for (const Task& task : tasks) {
            for (const test::Key& key :
                 test::needsOf(task, r.orders.stages, r.orders.slices, split)) {
                const Task& other = tasks[vertex.at(key)];
                const std::uint32_t boundary = std::min(task.stage, other.stage);
                const double lag = other.device == task.device ? 0 : r.spec.transfer[boundary];
                boost::add_edge(vertex.at(key), vertex.at(test::keyOf(task)), duration(other) + lag,
                                graph);
            }
        }
        for (const auto& list : r.orders.lists) {
            for (std::size_t i = 1; i < list.size(); ++i) {
                boost::add_edge(vertex.at(test::keyOf(list[i - 1])),
                                vertex.at(test::keyOf(list[i])), duration(list[i - 1]), graph);
            }
        }
        const std::vector<double> start = longestPaths(graph);
        for (TaskId id = 0; id < s.program.tasks.size(); ++id) {
            const Task& task = s.program.tasks[id];
            const double expected = start[vertex.at(test::keyOf(task))];
            QVERIFY(same(s.timeline.start[id], expected));
            QVERIFY(same(s.timeline.end[id], expected + duration(task)));
        }
        checkIdle(s);
        checkMemory(s);
    }
}

void TestScheduleEngine::schedulesAreLongestPaths_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("transfers");
    for (const Generator& generator : generators()) {
        for (const int transfers : {0, 1, 2}) {
            QTest::addRow("%s %d", generator.name.data(), transfers)
                << QString::fromLatin1(generator.name.data()) << transfers;
        }
    }
}

/// Also those that went by rule, when they are repeated as the lists they came to.
void TestScheduleEngine::schedulesAreLongestPaths() {
    QFETCH(QString, name);
    QFETCH(int, transfers);
    ScheduleSpec spec = commonSpec(name.toStdString());
    spec.transfers = static_cast<Transfers>(transfers);
    const Schedule s = makeSchedule(spec);
    checkIdle(s);
    checkMemory(s);
    const Schedule listed = makeSchedule(spec, asLists(s.orders, s.program, s.timeline));
    checkLongestPaths(listed.program, listed.timeline);
    checkIdle(listed);
    checkMemory(listed);
    if (transfers == 0 || !s.orders.rule)
        QVERIFY(same(listed.timeline.makespan, s.timeline.makespan));
}

void TestScheduleEngine::rulesWasteNothing_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<double>("limit");
    QTest::newRow("zb-h2") << "zb-h2" << 0.0;
    QTest::newRow("zb-h2 3") << "zb-h2" << 3.0;
    QTest::newRow("chimera") << "chimera" << 0.0;
    QTest::newRow("3f1b") << "3f1b" << 0.0;
}

/// A device is never idle while a task that the rule admits is ready, and never takes a worse one.
void TestScheduleEngine::rulesWasteNothing() {
    QFETCH(QString, name);
    QFETCH(double, limit);
    ScheduleSpec spec = commonSpec(name.toStdString());
    spec.limit = limit;
    spec.times.front().update = spec.times.front().allReduce = 0;
    const Schedule s = makeSchedule(spec);
    const Program& program = s.program;
    const auto ready = [&](TaskId id) {
        double time = 0;
        for (const Dependency& other : program.dependenciesOf(id)) {
            time = std::max(time, s.timeline.end[other.task] + program.lags[other.lag]);
        }
        return time;
    };
    // How many have started and not given back, just before something starts at this time.
    const auto held = [&](std::uint8_t takes, std::uint8_t gives, double time, auto&& counts) {
        int count = 0;
        for (TaskId id = 0; id < program.tasks.size(); ++id) {
            if (!counts(program.tasks[id])) continue;
            if ((program.tokens[id] & takes) && s.timeline.start[id] < time - 1e-9) ++count;
            if ((program.tokens[id] & gives) && s.timeline.end[id] < time + 1e-9) --count;
        }
        return count;
    };
    const auto inFlight = [&](const Task& task, double time, bool ofChunk) {
        return held(token::kTakesDevice, token::kGivesDevice, time, [&](const Task& other) {
            return other.device == task.device && (!ofChunk || other.chunk == task.chunk);
        });
    };
    const auto admits = [&](TaskId id, double time) {
        const Task& task = program.tasks[id];
        if (program.tokens[id] & token::kTakesDevice) {
            if (inFlight(task, time, false) >= program.deviceLimit[task.device]) return false;
            if (inFlight(task, time, true) >= program.chunkLimit[task.device]) return false;
        }
        return !(program.tokens[id] & token::kTakesWindow) ||
               held(token::kTakesWindow, token::kGivesWindow, time,
                    [](const Task&) { return true; }) < program.window;
    };
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        const Queue& queue = program.queues[program.tasks[id].device];
        const double time = s.timeline.start[id];
        QVERIFY(ready(id) <= time + 1e-9);
        QVERIFY(admits(id, time));
        double free = 0; // end of what the device did before
        for (TaskId other = queue.begin; other < queue.end; ++other) {
            if (s.timeline.start[other] < time) free = std::max(free, s.timeline.end[other]);
        }
        for (TaskId other = queue.begin; other < queue.end; ++other) {
            if (s.timeline.start[other] <= time) continue;
            const bool better = program.rank[other] < program.rank[id];
            if (better && ready(other) <= time - 1e-9) QVERIFY(!admits(other, time));
            if (time > free + 1e-9 && ready(other) < time - 1e-6) {
                QVERIFY(!admits(other, std::max(free, ready(other)) + 1e-7));
            }
        }
    }
}

/// Slow transfers let each direction of Chimera fill the devices it begins on; the other one must
/// still get through.
void TestScheduleEngine::pipelinesDoNotStopEachOther() {
    ScheduleSpec spec = specOf("chimera", 4, 16);
    for (const double transfer : {0.1, 1.0, 10.0, 100.0}) {
        spec.transfer = {transfer};
        for (const double limit : {2.0, 3.0, 4.0}) {
            spec.limit = limit;
            const Schedule s = makeSchedule(spec);
            QVERIFY(s.account.peakMemory <= limit);
        }
    }
}

/// Any numbers, zeros among them: what is not refused adds up, and repeated as lists it is the
/// same.
void TestScheduleEngine::randomSpecs() {
    std::mt19937 random(11);
    int taken = 0;
    for (int round = 0; round < 3000; ++round) {
        const ScheduleSpec spec = test::randomSpec(random);
        Schedule s;
        try {
            s = makeSchedule(spec);
        } catch (const RuleError& error) {
            QVERIFY2(error.rule() == BrokenRule::Sizes, error.what());
            continue;
        }
        checkIdle(s);
        checkMemory(s);
        const Schedule listed = makeSchedule(spec, asLists(s.orders, s.program, s.timeline));
        if (spec.transfers == Transfers::Lag || !s.orders.rule) {
            QVERIFY(same(listed.timeline.makespan, s.timeline.makespan));
        }
        ++taken;
    }
    QVERIFY(taken > 2000);
}

SHARDLENS_TEST(TestScheduleEngine)

} // namespace tst_schedule_engine

#include "tst_schedule_engine.moc"
