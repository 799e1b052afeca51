// SPDX-License-Identifier: Apache-2.0
// Conversions between layouts, checked by an element-level simulator: every rank holds its local
// block as elements with their global index and its contribution, collectives move and add
// elements by local position alone, and at the end every rank must hold what the wanted layout
// says. Slices are not listed, so the simulator tries every moment to make one; the bytes of each
// step must equal what the ranks really hold then.
#include "core/cost/collective.h"
#include "tests/test_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <QTest>

#include <functional>
#include <numeric>
#include <random>
#include <span>

namespace tst_conversion {

using namespace shardlens;

namespace {

constexpr double kElementBytes = 4;

struct Element {
    int index = 0;   ///< in the whole tensor, row-major
    long amount = 0; ///< this rank's contribution
};

struct Block {
    std::vector<int> shape;
    std::vector<Element> elements; ///< row-major
};

int volume(const std::vector<int>& shape) {
    return std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
}

std::vector<int> position(int flat, const std::vector<int>& shape) {
    std::vector<int> at(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
        at[d] = flat % shape[d];
        flat /= shape[d];
    }
    return at;
}

int flatten(const std::vector<int>& at, const std::vector<int>& shape) {
    int flat = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + at[d];
    return flat;
}

/// Part `part` of `parts` equal ones along a dimension.
Block sliced(const Block& block, std::size_t dim, int part, int parts) {
    Block result{block.shape, {}};
    result.shape[dim] /= parts;
    for (int i = 0; i < volume(result.shape); ++i) {
        std::vector<int> at = position(i, result.shape);
        at[dim] += part * result.shape[dim];
        result.elements.push_back(
            block.elements[static_cast<std::size_t>(flatten(at, block.shape))]);
    }
    return result;
}

Block joined(const std::vector<Block>& parts, std::size_t dim) {
    Block result{parts[0].shape, {}};
    result.shape[dim] *= static_cast<int>(parts.size());
    for (int i = 0; i < volume(result.shape); ++i) {
        std::vector<int> at = position(i, result.shape);
        const int part = at[dim] / parts[0].shape[dim];
        at[dim] %= parts[0].shape[dim];
        const Block& source = parts[static_cast<std::size_t>(part)];
        result.elements.push_back(
            source.elements[static_cast<std::size_t>(flatten(at, source.shape))]);
    }
    return result;
}

/// Element-wise sum; the blocks must lie over the same elements.
bool add(Block& sum, const Block& other) {
    if (sum.shape != other.shape) return false;
    for (std::size_t i = 0; i < sum.elements.size(); ++i) {
        if (sum.elements[i].index != other.elements[i].index) return false;
        sum.elements[i].amount += other.elements[i].amount;
    }
    return true;
}

long trueAmount(int index) {
    return 1000 + index;
}

struct Machine {
    const Mesh& mesh;
    std::vector<int> shape;
    std::vector<Block> ranks;
    SideLayout now{};

    int axisSize(std::size_t axis) const { return mesh.axes[axis].size; }
    int coordinate(int rank, std::size_t axis) const { return mesh.coordinates(rank)[axis]; }

    /// Ranks that differ from `rank` along the axis only, by coordinate.
    std::vector<int> group(int rank, std::size_t axis) const {
        std::vector<int> members;
        for (int other = 0; other < mesh.devices(); ++other) {
            std::vector<int> a = mesh.coordinates(rank), b = mesh.coordinates(other);
            a[axis] = b[axis] = 0;
            if (a == b) members.push_back(other);
        }
        return members;
    }

    double localBytes() const {
        return kElementBytes * static_cast<double>(ranks[0].elements.size());
    }

    void apply(std::size_t axis, AxisState state,
               const std::function<Block(int, const std::vector<int>&)>& change) {
        std::vector<Block> next;
        next.reserve(ranks.size());
        for (int r = 0; r < mesh.devices(); ++r) next.push_back(change(r, group(r, axis)));
        ranks = std::move(next);
        now[axis] = state;
    }

    const Block& at(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
};

/// What each rank holds of a layout. Contributions of ranks along partial axes are arbitrary, but
/// add up to the true amounts.
Machine machineWith(const SideLayout& side, const Mesh& mesh, const std::vector<int>& shape) {
    Machine machine{mesh, shape, {}, side};
    for (int rank = 0; rank < mesh.devices(); ++rank) {
        Block block{shape, {}};
        int partial = 0, partials = 1; // this rank's number among those whose sum is the tensor
        for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
            if (side[a] != kStatePartial) continue;
            partial = partial * mesh.axes[a].size + machine.coordinate(rank, a);
            partials *= mesh.axes[a].size;
        }
        for (int i = 0; i < volume(shape); ++i) {
            const long share = i % 7 + 3;
            const long amount = partial + 1 < partials
                                    ? share * (partial + 1)
                                    : trueAmount(i) - share * partials * (partials - 1) / 2;
            block.elements.push_back({i, amount});
        }
        for (std::size_t a = 0; a < mesh.axes.size(); ++a) // outer axes are major
            if (side[a] >= 0)
                block = sliced(block, static_cast<std::size_t>(side[a]),
                               machine.coordinate(rank, a), mesh.axes[a].size);
        machine.ranks.push_back(std::move(block));
    }
    return machine;
}

bool holds(const Machine& machine, const SideLayout& wanted) {
    const Machine expected = machineWith(wanted, machine.mesh, machine.shape);
    for (int rank = 0; rank < machine.mesh.devices(); ++rank) {
        // The sum over the ranks along the partial axes, by local position.
        std::vector<int> members{rank};
        for (std::size_t a = 0; a < machine.mesh.axes.size(); ++a) {
            if (wanted[a] != kStatePartial) continue;
            std::vector<int> more;
            for (const int m : members)
                for (const int other : machine.group(m, a)) more.push_back(other);
            members = std::move(more);
        }
        Block sum = machine.at(members[0]);
        for (std::size_t i = 1; i < members.size(); ++i)
            if (!add(sum, machine.at(members[i]))) return false;
        const Block& right = expected.at(rank);
        if (sum.shape != right.shape) return false;
        for (std::size_t i = 0; i < sum.elements.size(); ++i) {
            if (sum.elements[i].index != right.elements[i].index) return false;
            if (sum.elements[i].amount != trueAmount(sum.elements[i].index)) return false;
        }
    }
    return true;
}

/// Runs one step if the ranks can and its bytes are theirs.
bool perform(Machine& machine, const CollectiveStep& step, const SideLayout& wanted) {
    const std::size_t axis = step.axis;
    const int size = machine.axisSize(axis);
    const AxisState from = machine.now[axis], to = wanted[axis];
    const auto sum = [&](const std::vector<int>& group) {
        Block total = machine.at(group[0]);
        for (std::size_t i = 1; i < group.size(); ++i)
            if (!add(total, machine.at(group[i]))) total.elements.clear();
        return total;
    };
    const auto gathered = [&](const std::vector<int>& group) {
        std::vector<Block> parts;
        parts.reserve(group.size());
        for (const int member : group) parts.push_back(machine.at(member));
        return joined(parts, static_cast<std::size_t>(from));
    };
    const double local = machine.localBytes();
    switch (step.kind) {
    case CollectiveKind::AllReduce:
        if (from != kStatePartial || step.bytes != local) return false;
        machine.apply(axis, kStateReplicated,
                      [&](int, const std::vector<int>& group) { return sum(group); });
        return true;
    case CollectiveKind::ReduceScatter:
        if (from != kStatePartial || to < 0 || step.bytes != local) return false;
        machine.apply(axis, to, [&](int rank, const std::vector<int>& group) {
            return sliced(sum(group), static_cast<std::size_t>(to), machine.coordinate(rank, axis),
                          size);
        });
        return true;
    case CollectiveKind::AllGather:
        if (from < 0 || step.bytes != local * size) return false;
        machine.apply(axis, kStateReplicated,
                      [&](int, const std::vector<int>& group) { return gathered(group); });
        return true;
    case CollectiveKind::AllToAll:
        if (from < 0 || to < 0 || step.bytes != local * size) return false;
        machine.apply(axis, to, [&](int rank, const std::vector<int>& group) {
            return sliced(gathered(group), static_cast<std::size_t>(to),
                          machine.coordinate(rank, axis), size);
        });
        return true;
    }
    return false;
}

/// True if the steps, with slices where the search puts them, end in the wanted layout.
bool arrives(const Machine& machine, std::span<const CollectiveStep> steps,
             const SideLayout& wanted) {
    if (steps.empty() && holds(machine, wanted)) return true;
    if (!steps.empty()) {
        Machine next = machine;
        if (perform(next, steps.front(), wanted) && arrives(next, steps.subspan(1), wanted))
            return true;
    }
    for (std::size_t a = 0; a < machine.mesh.axes.size(); ++a) {
        if (machine.now[a] != kStateReplicated || wanted[a] == kStateReplicated) continue;
        Machine next = machine;
        next.apply(a, wanted[a], [&](int rank, const std::vector<int>&) {
            Block block = machine.at(rank);
            if (wanted[a] >= 0)
                return sliced(block, static_cast<std::size_t>(wanted[a]),
                              machine.coordinate(rank, a), machine.axisSize(a));
            if (machine.coordinate(rank, a) != 0) // one rank keeps the value, the others add zero
                for (Element& element : block.elements) element.amount = 0;
            return block;
        });
        if (arrives(next, steps, wanted)) return true;
    }
    return false;
}

Mesh meshOf(const std::vector<int>& sizes) {
    Mesh mesh;
    for (const int size : sizes)
        mesh.axes.push_back(
            {std::string(1, static_cast<char>('a' + mesh.axes.size())), size, {}, false});
    return mesh;
}

/// All states of a mesh over `dims` dimensions.
std::vector<SideLayout> allSides(const Mesh& mesh, AxisState dims) {
    SideLayout idle;
    idle.fill(kStateReplicated);
    std::vector<SideLayout> sides{idle};
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        std::vector<SideLayout> next;
        for (const SideLayout& side : sides) {
            for (AxisState state = kStatePartial; state < dims; ++state) {
                next.push_back(side);
                next.back()[a] = state;
            }
        }
        sides = std::move(next);
    }
    return sides;
}

std::string describe(const SideLayout& from, const SideLayout& to,
                     const std::vector<CollectiveStep>& steps) {
    std::vector<std::string_view> kinds;
    std::ranges::transform(steps, std::back_inserter(kinds),
                           [](const CollectiveStep& step) { return nameOf(step.kind); });
    return fmt::format("{} -> {}: {}", from, to, fmt::join(kinds, ", "));
}

SideLayout side(AxisState a, AxisState b = kStateReplicated, AxisState c = kStateReplicated) {
    return {a, b, c, kStateReplicated};
}

constexpr AxisState R = kStateReplicated;
constexpr AxisState P = kStatePartial;
using Steps = std::vector<CollectiveStep>;

constexpr auto AR = CollectiveKind::AllReduce;
constexpr auto AG = CollectiveKind::AllGather;
constexpr auto RS = CollectiveKind::ReduceScatter;
constexpr auto AA = CollectiveKind::AllToAll;

} // namespace

class TestConversion : public QObject {
    Q_OBJECT

private slots:
    void byHand_data();
    void byHand();
    void withoutReduceScatter();
    void withoutAllToAll();
    void simulated_data();
    void simulated();
};

void TestConversion::byHand_data() {
    QTest::addColumn<QVector<int>>("sizes");
    QTest::addColumn<SideLayout>("from");
    QTest::addColumn<SideLayout>("to");
    QTest::addColumn<Steps>("steps");
    const QVector<int> mesh{2, 4}; // of a tensor of 800 bytes
    QTest::newRow("nothing") << mesh << side(0, 1) << side(0, 1) << Steps{};
    QTest::newRow("slice") << mesh << side(R, R) << side(0, 1) << Steps{};
    QTest::newRow("slice both axes of a dim") << mesh << side(R, R) << side(0, 0) << Steps{};
    QTest::newRow("gather") << mesh << side(R, 0) << side(R, R) << Steps{{AG, 1, 800}};
    QTest::newRow("gather, other axis sharded")
        << mesh << side(0, 1) << side(0, R) << Steps{{AG, 1, 400}};
    QTest::newRow("gather both: slow axis first")
        << mesh << side(0, 1) << side(R, R) << Steps{{AG, 0, 200}, {AG, 1, 800}};
    QTest::newRow("gather both of a dim: inner first")
        << mesh << side(0, 0) << side(R, R) << Steps{{AG, 1, 400}, {AG, 0, 800}};
    QTest::newRow("reduce") << mesh << side(P, R) << side(R, R) << Steps{{AR, 0, 800}};
    QTest::newRow("reduce sharded") << mesh << side(P, 0) << side(R, 0) << Steps{{AR, 0, 200}};
    QTest::newRow("scatter") << mesh << side(R, P) << side(R, 1) << Steps{{RS, 1, 800}};
    QTest::newRow("slice before reduce") << mesh << side(R, P) << side(0, R) << Steps{{AR, 1, 400}};
    QTest::newRow("scatter before reduce")
        << mesh << side(P, P) << side(R, 0) << Steps{{RS, 1, 800}, {AR, 0, 200}};
    QTest::newRow("scatter both: fast axis first")
        << mesh << side(P, P) << side(0, 1) << Steps{{RS, 1, 800}, {RS, 0, 200}};
    QTest::newRow("scatter both of a dim: outer first")
        << mesh << side(P, P) << side(0, 0) << Steps{{RS, 0, 800}, {RS, 1, 400}};
    QTest::newRow("all-to-all") << mesh << side(R, 0) << side(R, 1) << Steps{{AA, 1, 800}};
    QTest::newRow("all-to-all, other axis sharded")
        << mesh << side(0, 1) << side(0, 2) << Steps{{AA, 1, 400}};
    // The outer axis cannot leave alone: the inner one is gathered and sliced again.
    QTest::newRow("outer under inner")
        << mesh << side(0, 0) << side(R, 0) << Steps{{AG, 1, 400}, {AG, 0, 800}};
    QTest::newRow("partial is kept") << mesh << side(P, 0) << side(P, R) << Steps{{AG, 1, 800}};
    QTest::newRow("to partial is free") << mesh << side(R, 0) << side(P, 0) << Steps{};
    QTest::newRow("axes swap dims") // one has to be gathered
        << mesh << side(0, 1) << side(1, 0) << Steps{{AG, 0, 200}, {AA, 1, 800}};
    QTest::newRow("axis of one") << QVector<int>{1, 4} << side(0, P) << side(P, R)
                                 << Steps{{AR, 1, 800}};
}

void TestConversion::byHand() {
    QFETCH(QVector<int>, sizes);
    QFETCH(SideLayout, from);
    QFETCH(SideLayout, to);
    QFETCH(Steps, steps);
    const Mesh mesh = meshOf({sizes.begin(), sizes.end()});
    const Steps planned = planConversion(from, to, 800, mesh);
    QVERIFY2(planned == steps, describe(from, to, planned).c_str());
}

void TestConversion::withoutReduceScatter() {
    const Mesh mesh = meshOf({2, 4});
    const ConversionRules rules{.reduceScatter = false};
    QVERIFY(planConversion(side(R, P), side(R, 0), 800, mesh, rules) == (Steps{{AR, 1, 800}}));
    QVERIFY(planConversion(side(P, P), side(0, 0), 800, mesh, rules) ==
            (Steps{{AR, 0, 800}, {AR, 1, 400}}));
}

void TestConversion::withoutAllToAll() {
    const Mesh mesh = meshOf({2, 4});
    const ConversionRules rules{.allToAll = false};
    QVERIFY(planConversion(side(0, 1), side(0, 2), 800, mesh, rules) == (Steps{{AG, 1, 400}}));
}

void TestConversion::simulated_data() {
    QTest::addColumn<QVector<int>>("sizes");
    QTest::addColumn<QVector<int>>("shape");
    QTest::addColumn<int>("samples"); // 0: all pairs
    QTest::newRow("2x2, 3 dims") << QVector<int>{2, 2} << QVector<int>{4, 4, 4} << 0;
    QTest::newRow("2x3, 2 dims") << QVector<int>{2, 3} << QVector<int>{6, 6} << 0;
    QTest::newRow("4, 3 dims") << QVector<int>{4} << QVector<int>{4, 4, 4} << 0;
    QTest::newRow("1x4, 2 dims") << QVector<int>{1, 4} << QVector<int>{4, 4} << 0;
    QTest::newRow("2x2x2, 2 dims") << QVector<int>{2, 2, 2} << QVector<int>{8, 8} << 250;
    QTest::newRow("2x2x2, 3 dims") << QVector<int>{2, 2, 2} << QVector<int>{8, 8, 8} << 20;
}

void TestConversion::simulated() {
    QFETCH(QVector<int>, sizes);
    QFETCH(QVector<int>, shape);
    QFETCH(int, samples);
    const Mesh mesh = meshOf({sizes.begin(), sizes.end()});
    const std::vector<int> dims(shape.begin(), shape.end());
    const std::vector<SideLayout> sides = allSides(mesh, static_cast<AxisState>(dims.size()));
    const double bytes = kElementBytes * volume(dims);

    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    pairs.reserve(sides.size() * sides.size());
    std::mt19937 random(1);
    for (int i = 0; i < samples; ++i)
        pairs.emplace_back(random() % sides.size(), random() % sides.size());
    if (samples == 0)
        for (std::size_t i = 0; i < sides.size(); ++i)
            for (std::size_t j = 0; j < sides.size(); ++j) pairs.emplace_back(i, j);

    for (const auto& [i, j] : pairs) {
        for (const ConversionRules rules :
             {ConversionRules{true, true}, {true, false}, {false, true}, {false, false}}) {
            const Steps steps = planConversion(sides[i], sides[j], bytes, mesh, rules);
            const Machine machine = machineWith(sides[i], mesh, dims);
            QVERIFY2(arrives(machine, steps, sides[j]),
                     describe(sides[i], sides[j], steps).c_str());
            for (const CollectiveStep& step : steps) {
                QVERIFY(mesh.axes[step.axis].size > 1);
                QVERIFY(rules.reduceScatter || step.kind != RS);
                QVERIFY(rules.allToAll || step.kind != AA);
            }
        }
    }
}

SHARDLENS_TEST(TestConversion)

} // namespace tst_conversion

#include "tst_conversion.moc"
