// SPDX-License-Identifier: Apache-2.0
// Rows of numbers are collected as they come; what they mean together is checked at the end, since
// a JSON object may list its members in any order.
#include "core/solve/contest_file.h"

#include "core/error.h"
#include "core/solve/text_source.h"

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <unordered_map>

namespace shardlens::solve {
namespace {

constexpr double kForbidden = 1e18;
constexpr std::size_t kMostNumbers = std::size_t{1} << 27; ///< 1 GiB of them
constexpr std::size_t kMostRows = std::size_t{1} << 24;

/// Where in the file a value stands.
enum class Place : std::uint8_t {
    Top,
    Problem,
    Nodes,
    Edges,
    Intervals, // from here on: lists of rows of numbers
    NodeCosts,
    Usages,
    EdgeNodes,
    EdgeCosts,
    Row,
    Name,
    Limit,
    Unknown,
};

struct Member {
    Place in;
    const char* key;
    Place place;
};
constexpr std::array kMembers = {
    Member{Place::Top, "problem", Place::Problem},
    Member{Place::Problem, "name", Place::Name},
    Member{Place::Problem, "nodes", Place::Nodes},
    Member{Place::Problem, "edges", Place::Edges},
    Member{Place::Problem, "usage_limit", Place::Limit},
    Member{Place::Nodes, "intervals", Place::Intervals},
    Member{Place::Nodes, "costs", Place::NodeCosts},
    Member{Place::Nodes, "usages", Place::Usages},
    Member{Place::Edges, "nodes", Place::EdgeNodes},
    Member{Place::Edges, "costs", Place::EdgeCosts},
};

constexpr bool isTable(Place place) {
    return place >= Place::Intervals && place <= Place::EdgeCosts;
}

std::string nameOf(Place place) {
    const auto member = std::ranges::find(kMembers, place, &Member::place);
    if (member == kMembers.end()) return {};
    const std::string outer = nameOf(member->in);
    return outer.empty() ? member->key : outer + "." + member->key;
}

[[noreturn]] void fail(std::string what, std::string where) {
    throw InputError(std::move(what), std::move(where),
                     "the file must be a problem of the contest on intra-operator parallelism");
}

/// Rows of numbers, one after the other.
struct Rows {
    std::vector<double> values;
    std::vector<std::size_t> end;

    std::size_t size() const { return end.size(); }
    std::span<const double> row(std::size_t i) const {
        const std::size_t begin = i == 0 ? 0 : end[i - 1];
        return std::span(values).subspan(begin, end[i] - begin);
    }
};

class Reader : public nlohmann::json_sax<nlohmann::json> {
public:
    bool null() override { return scalar("null"); }
    bool boolean(bool) override { return scalar("a truth value"); }
    bool number_integer(number_integer_t value) override {
        return number(static_cast<double>(value));
    }
    bool number_unsigned(number_unsigned_t value) override {
        return number(static_cast<double>(value));
    }
    bool number_float(number_float_t value, const string_t&) override { return number(value); }
    bool string(string_t& value) override {
        if (next() == Place::Name) {
            m_problem.name = value;
            return true;
        }
        return scalar("a text");
    }
    bool binary(binary_t&) override { return scalar("binary data"); }

    bool start_object(std::size_t) override {
        const Place place = next();
        if (place > Place::Edges && place != Place::Unknown)
            fail("an object is not expected", at());
        enter(place);
        return true;
    }
    bool key(string_t& value) override {
        const Place in = m_places.back();
        const auto member = std::ranges::find_if(
            kMembers, [&](const Member& m) { return m.in == in && value == m.key; });
        m_next = member == kMembers.end() ? Place::Unknown : member->place;
        if (m_next == Place::Unknown) return true;
        char& seen = m_seen[static_cast<std::size_t>(m_next)];
        if (seen) fail("given twice", nameOf(m_next));
        seen = 1;
        return true;
    }
    bool end_object() override {
        m_places.pop_back();
        return true;
    }
    bool start_array(std::size_t) override {
        const Place place = next();
        if (!isTable(place) && place != Place::Row && place != Place::Unknown) {
            fail("a list is not expected", at());
        }
        enter(place);
        return true;
    }
    bool end_array() override {
        const Place place = m_places.back();
        m_places.pop_back();
        if (place == Place::Row) endRow(m_places.back());
        return true;
    }
    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::json::exception& error) override {
        if (std::string_view(error.what()).find("unexpected end of input") != std::string::npos)
            fail("the file ends too early", fmt::format("byte {}", position));
        fail("this is not JSON", fmt::format("byte {}", position));
    }

    IntervalProblem finish() {
        for (const Place place : {Place::Problem, Place::Intervals, Place::NodeCosts, Place::Usages,
                                  Place::EdgeNodes, Place::EdgeCosts}) {
            if (!m_seen[static_cast<std::size_t>(place)]) {
                fail(fmt::format("{} is missing", nameOf(place)), {});
            }
        }
        makeNodes();
        makePairs();
        return std::move(m_problem);
    }

private:
    Rows& rows(Place table) { return m_rows[static_cast<std::size_t>(table)]; }

    /// The place of the value that begins now.
    Place next() const {
        if (m_places.empty()) return Place::Top;
        const Place in = m_places.back();
        if (isTable(in)) return Place::Row;
        return in == Place::Row || in == Place::Unknown ? Place::Unknown : m_next;
    }
    void enter(Place place) {
        if (place == Place::Unknown && !m_places.empty() && m_places.back() == Place::Row) {
            fail("a number is expected", at());
        }
        m_places.push_back(place);
    }
    bool scalar(const char* what) {
        const Place place = next();
        if (place == Place::Unknown && m_places.back() != Place::Row) return true;
        fail(fmt::format("{} is not expected", what), at());
    }
    bool number(double value) {
        if (!m_places.empty() && m_places.back() == Place::Row) {
            if (++m_numbers > kMostNumbers) fail("there are too many numbers", at());
            rows(m_places[m_places.size() - 2]).values.push_back(value);
            return true;
        }
        if (next() != Place::Limit) return scalar("a number");
        if (value < 0) fail("the limit is negative", nameOf(Place::Limit));
        m_problem.limit = value;
        return true;
    }
    std::string at() const {
        if (m_places.empty()) return "the beginning";
        const Place in = m_places.back();
        if (in == Place::Row) return rowName(m_places[m_places.size() - 2]);
        if (isTable(in)) return rowName(in);
        return m_next == Place::Unknown ? nameOf(in) : nameOf(m_next);
    }
    std::string rowName(Place table) const {
        return rowName(table, m_rows[static_cast<std::size_t>(table)].size());
    }
    static std::string rowName(Place table, std::size_t row) {
        return fmt::format("{}[{}]", nameOf(table), row);
    }

    void endRow(Place table) {
        Rows& all = rows(table);
        if (all.size() == kMostRows) fail("there are too many rows", at());
        if (table == Place::EdgeCosts) {
            forbid(all.values);
            m_content.push_back(contentOf(all.values));
            all.values.clear();
        }
        all.end.push_back(all.values.size());
    }
    static void forbid(std::vector<double>& costs) {
        for (double& cost : costs) {
            if (cost >= kForbidden) cost = kInfinite;
        }
    }
    /// The number of an equal row of edge costs seen before, or of this new one.
    std::size_t contentOf(const std::vector<double>& row) {
        const std::string_view bytes(reinterpret_cast<const char*>(row.data()),
                                     row.size() * sizeof(double));
        const std::size_t hash = std::hash<std::string_view>()(bytes);
        const auto [first, last] = m_known.equal_range(hash);
        for (auto it = first; it != last; ++it) {
            if (m_contents[it->second] == row) return it->second;
        }
        m_known.emplace(hash, m_contents.size());
        m_contents.push_back(row);
        return m_contents.size() - 1;
    }

    void makeNodes() {
        const Rows &intervals = rows(Place::Intervals), &usages = rows(Place::Usages);
        Rows& costs = rows(Place::NodeCosts);
        if (intervals.size() != costs.size() || usages.size() != costs.size()) {
            fail(fmt::format("there are {} intervals, {} rows of costs and {} of usages",
                             intervals.size(), costs.size(), usages.size()),
                 nameOf(Place::Nodes));
        }
        forbid(costs.values);
        m_problem.nodes.resize(costs.size());
        for (std::size_t i = 0; i < costs.size(); ++i) {
            auto& node = m_problem.nodes[i];
            node.alive = interval(intervals.row(i), i);
            const auto cost = costs.row(i), usage = usages.row(i);
            if (cost.empty()) fail("a node has no choice", rowName(Place::NodeCosts, i));
            if (cost.size() > kMostChoices) {
                fail(fmt::format("a node has {} choices, more than {}", cost.size(), kMostChoices),
                     rowName(Place::NodeCosts, i));
            }
            if (cost.size() != usage.size()) {
                fail(fmt::format("there are {} usages for {} choices", usage.size(), cost.size()),
                     rowName(Place::Usages, i));
            }
            if (std::ranges::any_of(usage, [](double u) { return u < 0; })) {
                fail("a usage is negative", rowName(Place::Usages, i));
            }
            node.cost.assign(cost.begin(), cost.end());
            node.usage.assign(usage.begin(), usage.end());
        }
    }
    static Interval interval(std::span<const double> row, std::size_t i) {
        constexpr double kMostTime = 9e15; // exact in a double
        const auto good = [](double t) { return std::abs(t) < kMostTime && t == std::floor(t); };
        if (row.size() != 2 || !std::ranges::all_of(row, good)) {
            fail("an interval is two whole numbers", rowName(Place::Intervals, i));
        }
        if (row[1] < row[0]) {
            fail("an interval ends before it begins", rowName(Place::Intervals, i));
        }
        return {static_cast<Time>(row[0]), static_cast<Time>(row[1])};
    }

    void makePairs() {
        const Rows& nodes = rows(Place::EdgeNodes);
        if (nodes.size() != m_content.size()) {
            fail(fmt::format("{} edges have {} rows of costs", nodes.size(), m_content.size()),
                 nameOf(Place::Edges));
        }
        m_matrices.resize(m_contents.size());
        for (std::size_t e = 0; e < nodes.size(); ++e) makePair(nodes.row(e), e);
    }
    void makePair(std::span<const double> ends, std::size_t e) {
        if (ends.empty() || ends.size() > 2) {
            fail(fmt::format("an edge joins {} nodes, not one or two", ends.size()),
                 rowName(Place::EdgeNodes, e));
        }
        for (const double end : ends) {
            if (!(end >= 0 && end < double(m_problem.nodes.size())) || end != std::floor(end)) {
                fail(fmt::format("there is no node {}", end), rowName(Place::EdgeNodes, e));
            }
        }
        const auto u = static_cast<NodeId>(ends.front()), v = static_cast<NodeId>(ends.back());
        const std::vector<double>& costs = m_contents[m_content[e]];
        const std::size_t rows = m_problem.nodes[u].cost.size();
        const std::size_t cols = m_problem.nodes[v].cost.size();
        if (costs.size() != (ends.size() == 1 ? rows : rows * cols)) {
            fail(fmt::format("there are {} costs for {} x {} choices", costs.size(), rows,
                             ends.size() == 1 ? 1 : cols),
                 rowName(Place::EdgeCosts, e));
        }
        if (ends.size() == 1) {
            for (std::size_t c = 0; c < rows; ++c) m_problem.nodes[u].cost[c] += costs[c];
            return;
        }
        m_problem.pairs.push_back({u, v, matrix(m_content[e], rows, cols)});
    }
    MatrixPtr matrix(std::size_t content, std::size_t rows, std::size_t cols) {
        auto& known = m_matrices[content];
        const auto found =
            std::ranges::find(known, rows, [](const MatrixPtr& m) { return m->rows; });
        if (found != known.end()) return *found;
        known.push_back(std::make_shared<Matrix>(Matrix{static_cast<std::uint32_t>(rows),
                                                        static_cast<std::uint32_t>(cols),
                                                        m_contents[content]}));
        return known.back();
    }

    IntervalProblem m_problem;
    std::vector<Place> m_places; ///< of the objects and lists that are open
    Place m_next = Place::Unknown;
    std::array<char, static_cast<std::size_t>(Place::Unknown) + 1> m_seen{};
    std::array<Rows, static_cast<std::size_t>(Place::Unknown) + 1> m_rows;
    std::size_t m_numbers = 0;
    std::vector<std::vector<double>> m_contents;               ///< distinct rows of edge costs
    std::vector<std::size_t> m_content;                        ///< by edge
    std::unordered_multimap<std::size_t, std::size_t> m_known; ///< hash to content
    std::vector<std::vector<MatrixPtr>> m_matrices;            ///< by content, of each shape
};

/// The power of two that makes all numbers integers, or as many digits of them as fit.
double integerScale(std::span<const double> largestAndAll) {
    double most = 0;
    bool whole = true;
    for (const double value : largestAndAll) {
        if (value == kInfinite) continue;
        most = std::max(most, std::abs(value));
        whole = whole && value == std::floor(value);
    }
    constexpr double kMostWritten = 0x1p52;
    if (most == 0 || (whole && most <= kMostWritten)) return 1;
    return std::exp2(std::floor(std::log2(kMostWritten / most)) - (whole ? 0 : 12));
}

class Writer {
public:
    Writer(std::ostream& out, const IntervalProblem& problem) : m_out(out), m_problem(problem) {
        std::vector<double> costs, usages{std::isfinite(problem.limit) ? problem.limit : 0.0};
        for (const auto& node : problem.nodes) {
            costs.insert(costs.end(), node.cost.begin(), node.cost.end());
            usages.insert(usages.end(), node.usage.begin(), node.usage.end());
        }
        for (const auto& pair : problem.pairs) {
            costs.insert(costs.end(), pair.cost->values.begin(), pair.cost->values.end());
        }
        m_scale = {integerScale(costs), integerScale(usages)};
    }

    ContestScale write() {
        const auto& nodes = m_problem.nodes;
        fmt::print(m_out, "{{\"problem\": {{\"name\": {}, \"nodes\": {{\"intervals\": [",
                   nlohmann::json(m_problem.name)
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        list(nodes, [&](const auto& node) {
            fmt::print(m_out, "[{}, {}]", node.alive.begin,
                       std::max(node.alive.begin, node.alive.end));
        });
        fmt::print(m_out, "], \"costs\": [");
        list(nodes, [&](const auto& node) { costs(node.cost); });
        fmt::print(m_out, "], \"usages\": [");
        list(nodes, [&](const auto& node) { usages(node); });
        fmt::print(m_out, "]}}, \"edges\": {{\"nodes\": [");
        list(m_problem.pairs,
             [&](const auto& pair) { fmt::print(m_out, "[{}, {}]", pair.u, pair.v); });
        fmt::print(m_out, "], \"costs\": [");
        list(m_problem.pairs, [&](const auto& pair) { costs(pair.cost->values); });
        fmt::print(m_out, "]}}");
        if (m_problem.limit < kInfinite) {
            // Usages are rounded up and the limit down: what fits there fits here.
            fmt::print(m_out, ", \"usage_limit\": {:.0f}",
                       std::floor(std::max(0.0, m_problem.limit) * m_scale.usage));
        }
        fmt::print(m_out, "}}}}\n");
        return m_scale;
    }

private:
    void list(const auto& items, auto&& write) {
        bool first = true;
        for (const auto& item : items) {
            if (!first) m_out << ",\n";
            first = false;
            write(item);
        }
    }
    void costs(const std::vector<double>& values) {
        m_out << '[';
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (i > 0) m_out << ", ";
            if (values[i] == kInfinite) {
                m_out << "1000000000000000000";
            } else {
                fmt::print(m_out, "{}", std::llround(values[i] * m_scale.cost));
            }
        }
        m_out << ']';
    }
    void usages(const IntervalProblem::Node& node) {
        m_out << '[';
        for (std::size_t i = 0; i < node.cost.size(); ++i) {
            const double usage = node.usage.empty() ? 0.0 : node.usage[i];
            fmt::print(m_out, "{}{:.0f}", i > 0 ? ", " : "", std::ceil(usage * m_scale.usage));
        }
        m_out << ']';
    }

    std::ostream& m_out;
    const IntervalProblem& m_problem;
    ContestScale m_scale;
};

} // namespace

IntervalProblem readContest(std::string_view bytes) {
    TextSource source(bytes);
    Reader reader;
    nlohmann::json::sax_parse(source.begin(), source.end(), &reader);
    return reader.finish();
}

IntervalProblem readContestFile(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw InputError("the file cannot be opened", file.string(), "check its name");
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    if (in.bad()) throw InputError("the file cannot be read", file.string(), {});
    try {
        return readContest(bytes);
    } catch (const InputError& error) {
        throw InputError(error.problem(),
                         error.where().empty() ? file.string()
                                               : file.string() + ", " + error.where(),
                         error.hint());
    }
}

ContestScale writeContest(std::ostream& out, const IntervalProblem& problem) {
    validate(problem);
    return Writer(out, problem).write();
}

std::string solutionLine(std::span<const Choice> choices) {
    return fmt::format("[{}]", fmt::join(choices, ", "));
}

ChoiceList readSolution(std::string_view text) {
    const auto wrong = [](std::size_t at) {
        return InputError("this is not a solution", fmt::format("byte {}", at),
                          "write it as [0, 2, 1], a choice for each node");
    };
    const auto skip = [&](std::size_t at) {
        while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r')) ++at;
        return at;
    };
    ChoiceList out;
    std::size_t at = skip(0);
    if (at == text.size() || text[at] != '[') throw wrong(at);
    at = skip(at + 1);
    for (bool more = at < text.size() && text[at] != ']'; more; at = skip(at + 1)) {
        Choice choice = 0;
        at = skip(at);
        const auto [end, error] =
            std::from_chars(text.data() + at, text.data() + text.size(), choice);
        if (error != std::errc()) throw wrong(at);
        out.push_back(choice);
        at = skip(static_cast<std::size_t>(end - text.data()));
        if (at == text.size() || (text[at] != ',' && text[at] != ']')) throw wrong(at);
        more = text[at] == ',';
        if (!more) break;
    }
    if (at == text.size() || text[at] != ']' || skip(at + 1) != text.size()) throw wrong(at);
    return out;
}

} // namespace shardlens::solve
