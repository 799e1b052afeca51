// SPDX-License-Identifier: Apache-2.0
// A window is a list of members, parents first. Tables live in one array by label.
#include "core/solve/window_search.h"

#include "core/solve/min_plus.h"
#include "core/solve/monitor.h"
#include "core/solve/problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardlens::solve {

namespace {

constexpr int kStages = 8;         ///< steps of the price in a cycle, down to nothing
constexpr double kLowestTop = 0.2; ///< a cycle begins at a share of the price between this and 1
constexpr double kNoise = 0.3;     ///< deviation of the logarithm of a node's share
constexpr double kLargest = 300;   ///< nodes of a window

} // namespace

WindowSearch::WindowSearch(const CoreGraph& graph, std::uint64_t seed)
    : m_graph(graph), m_random(seed), m_value(graph.nodes(), 0), m_before(graph.nodes(), 0),
      m_left(graph.room()), m_priced(graph.labels()), m_self(graph.labels()),
      m_table(graph.labels()), m_stamp(graph.nodes(), 0), m_inside(graph.nodes(), 0),
      m_message(graph.mostChoices()), m_base(graph.mostChoices()), m_offsets(graph.mostChoices()) {
}

void WindowSearch::start(CoreChoices choices) {
    m_value = std::move(choices);
    m_left = m_graph.room();
    const std::vector<double> usage = m_graph.usageOf(m_value);
    for (std::size_t t = 0; t < m_left.size(); ++t) m_left[t] -= usage[t];
}

double WindowSearch::overload() const {
    return m_left.empty() ? 0.0 : -*std::ranges::min_element(m_left);
}

void WindowSearch::use(Var v, std::uint16_t choice, double sign) {
    for (const auto& part : m_graph.parts(v)) {
        const double usage = sign * part.usage[choice];
        if (usage == 0) continue;
        for (std::uint32_t t = part.first; t < part.last; ++t) m_left[t] -= usage;
    }
}

double WindowSearch::leastRoom(const CoreGraph::Part& part) const {
    double least = kInfinite;
    for (std::uint32_t t = part.first; t < part.last; ++t) {
        least = m_left[t] < least ? m_left[t] : least;
    }
    return least;
}

bool WindowSearch::fits(Var v, std::uint16_t choice) const {
    return std::ranges::all_of(m_graph.parts(v), [&](const CoreGraph::Part& part) {
        const double usage = part.usage[choice];
        if (usage == 0) return true;
        for (std::uint32_t t = part.first; t < part.last; ++t) {
            if (m_left[t] < usage) return false;
        }
        return true;
    });
}

void WindowSearch::decode(const std::vector<double>& priced, const std::vector<double>& messages,
                          Monitor& monitor) {
    m_left = m_graph.room();
    std::vector<double> sum;
    for (Var v = 0; v < m_graph.nodes(); ++v) {
        const std::uint32_t count = m_graph.choices(v);
        monitor.tick(std::size_t{count} * (1 + m_graph.links(v).size()));
        sum.assign(priced.begin() + std::ptrdiff_t(m_graph.first(v)),
                   priced.begin() + std::ptrdiff_t(m_graph.first(v) + count));
        for (const auto& link : m_graph.links(v)) {
            const double* more = link.to < v ? link.columns + std::size_t{m_value[link.to]} * count
                                             : messages.data() + link.in;
            for (std::uint32_t c = 0; c < count; ++c) sum[c] += more[c];
        }
        std::vector<std::uint16_t> order(count);
        std::iota(order.begin(), order.end(), std::uint16_t{0});
        std::ranges::stable_sort(order, {}, [&](std::uint16_t c) { return sum[c]; });
        const auto good = std::ranges::find_if(order, [&](std::uint16_t c) { return fits(v, c); });
        m_value[v] = good == order.end() ? order[0] : *good;
        use(v, m_value[v], 1);
    }
}

void WindowSearch::setPrices(const std::vector<double>& prices, double factor, double noise) {
    std::vector<double> before(prices.size() + 1, 0.0);
    std::partial_sum(prices.begin(), prices.end(), before.begin() + 1);
    std::normal_distribution<double> normal;
    for (Var v = 0; v < m_graph.nodes(); ++v) {
        double* out = m_priced.data() + m_graph.first(v);
        const std::uint32_t count = m_graph.choices(v);
        std::copy_n(m_graph.cost(v), count, out);
        const double shaken = factor * std::exp(noise * normal(m_random));
        for (const auto& part : m_graph.parts(v)) {
            const double price = shaken * (before[part.last] - before[part.first]);
            for (std::uint32_t c = 0; price > 0 && c < count; ++c) out[c] += price * part.usage[c];
        }
    }
}

void WindowSearch::cycle(const std::vector<double>& prices, std::size_t work, Monitor& monitor) {
    const double top = std::uniform_real_distribution<double>(kLowestTop, 1.0)(m_random);
    for (int stage = 0; stage <= kStages; ++stage) {
        const double factor = top * (1.0 - double(stage) / kStages);
        setPrices(prices, factor, kNoise);
        runWindows(work, monitor);
    }
}

void WindowSearch::runWindows(std::size_t work, Monitor& monitor) {
    for (std::size_t done = 0; done < work;) {
        const std::size_t step = tryWindow();
        monitor.tick(step);
        done += step;
    }
}

/// A forest around a random node: of the neighbours of what is inside, those that touch it once.
void WindowSearch::grow(std::size_t size) {
    m_window.clear();
    ++m_now;
    const auto add = [&](Var v, std::uint32_t parent, const CoreGraph::Link* up,
                         const CoreGraph::Link* down) {
        m_window.push_back({v, parent, up, down});
        m_inside[v] = m_now;
        m_stamp[v] = m_now;
    };
    add(static_cast<Var>(m_random() % m_graph.nodes()), 0, nullptr, nullptr);
    for (std::uint32_t next = 0; next < m_window.size() && m_window.size() < size; ++next) {
        const Var v = m_window[next].node;
        const auto links = m_graph.links(v);
        if (links.empty()) continue;
        const std::size_t offset = m_random() % links.size();
        for (std::size_t i = 0; i < links.size() && m_window.size() < size; ++i) {
            const auto& down = links[(i + offset) % links.size()];
            if (m_stamp[down.to] == m_now) continue;
            m_stamp[down.to] = m_now;
            const CoreGraph::Link* up = nullptr;
            int touching = 0;
            for (const auto& link : m_graph.links(down.to)) {
                if (m_inside[link.to] != m_now) continue;
                if (++touching > 1) break;
                up = &link;
            }
            if (touching == 1) add(down.to, next, up, &down);
        }
    }
}

/// @return work done
std::size_t WindowSearch::prepare(const Member& member) {
    const Var v = member.node;
    const std::uint32_t count = m_graph.choices(v);
    double* self = m_self.data() + m_graph.first(v);
    std::copy_n(m_priced.data() + m_graph.first(v), count, self);
    std::size_t work = count;
    for (const auto& link : m_graph.links(v)) {
        if (m_inside[link.to] == m_now) continue;
        const double* column = link.columns + std::size_t{m_value[link.to]} * count;
        for (std::uint32_t c = 0; c < count; ++c) self[c] += column[c];
        work += count;
    }
    double* table = m_table.data() + m_graph.first(v);
    std::copy_n(self, count, table);
    for (const auto& part : m_graph.parts(v)) {
        const double room = leastRoom(part);
        work += (part.last - part.first) / 4 + count / 4;
        for (std::uint32_t c = 0; c < count; ++c) {
            if (part.usage[c] > room && part.usage[c] > 0 && c != m_before[v]) {
                table[c] = kInfinite;
            }
        }
    }
    return work;
}

void WindowSearch::sendUp(const Member& member) {
    const Var v = member.node, parent = m_window[member.parent].node;
    const double* table = m_table.data() + m_graph.first(v);
    const std::uint32_t count = m_graph.choices(v), width = m_graph.choices(parent);
    std::uint32_t finite = 0;
    for (std::uint32_t c = 0; c < count; ++c) {
        if (table[c] == kInfinite) continue;
        m_base[finite] = table[c];
        m_offsets[finite++] = c * width;
    }
    std::fill_n(m_message.data(), width, kInfinite);
    minPlusRow(m_message.data(), width, m_base.data(), m_offsets.data(), finite, member.up->rows);
    double* out = m_table.data() + m_graph.first(parent);
    for (std::uint32_t c = 0; c < width; ++c) out[c] += m_message[c];
}

/// @return false if nothing fits
bool WindowSearch::choose(const Member& member) {
    const Var v = member.node;
    const std::uint32_t count = m_graph.choices(v);
    double* table = m_table.data() + m_graph.first(v);
    if (member.down) {
        const double* row =
            member.down->rows + std::size_t{m_value[m_window[member.parent].node]} * count;
        for (std::uint32_t c = 0; c < count; ++c) table[c] += row[c];
    }
    for (;;) {
        const auto best =
            static_cast<std::uint16_t>(std::min_element(table, table + count) - table);
        if (table[best] == kInfinite) return false;
        if (best == m_before[v] || fits(v, best)) {
            m_value[v] = best;
            use(v, best, 1);
            return true;
        }
        table[best] = kInfinite;
    }
}

/// What the window costs with its old or its new choices.
double WindowSearch::energy(bool before) const {
    const CoreChoices& value = before ? m_before : m_value;
    double sum = 0;
    for (const Member& member : m_window) {
        const std::size_t choice = value[member.node];
        sum += m_self[m_graph.first(member.node) + choice];
        if (!member.up) continue;
        const Var parent = m_window[member.parent].node;
        sum += member.up->rows[choice * m_graph.choices(parent) + value[parent]];
    }
    return sum;
}

/// @return work done
std::size_t WindowSearch::tryWindow() {
    ++m_windows;
    const double largest = std::min(double(m_graph.nodes()), (kLargest));
    const double exponent = std::uniform_real_distribution<double>(0.0, 1.0)(m_random);
    grow(static_cast<std::size_t>(std::pow(largest, exponent)));
    std::size_t work = 0;
    for (const Member& member : m_window) {
        m_before[member.node] = m_value[member.node];
        use(member.node, m_value[member.node], -1);
    }
    for (const Member& member : m_window) work += prepare(member);
    for (std::size_t i = m_window.size(); i-- > 1;) {
        if (!m_window[i].up) continue;
        sendUp(m_window[i]);
        work += std::size_t{m_graph.choices(m_window[i].node)} *
                m_graph.choices(m_window[m_window[i].parent].node);
    }
    std::size_t chosen = 0;
    while (chosen < m_window.size() && choose(m_window[chosen])) ++chosen;
    // A choice kept from before may have been overrun by those above it.
    bool good = chosen == m_window.size();
    if (good) {
        const double change = energy(false) - energy(true);
        good = change <= 0;
        for (const Member& member : m_window) {
            if (!good) break;
            for (const auto& part : m_graph.parts(member.node)) {
                if (part.usage[m_value[member.node]] > 0 && leastRoom(part) < 0) good = false;
            }
        }
        m_accepted += good && change < 0;
    }
    if (!good) {
        for (std::size_t i = 0; i < chosen; ++i) {
            use(m_window[i].node, m_value[m_window[i].node], -1);
        }
        for (const Member& member : m_window) {
            m_value[member.node] = m_before[member.node];
            use(member.node, m_value[member.node], 1);
        }
    }
    return work / 4 + 50;
}

} // namespace shardlens::solve
