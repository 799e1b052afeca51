// SPDX-License-Identifier: Apache-2.0
// Messages are kept when prices move: they start a little off and recover in a pass or two.
#include "core/solve/price_bound.h"

#include "core/solve/min_plus.h"
#include "core/solve/monitor.h"
#include "core/solve/problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardlens::solve {

namespace {

constexpr double kFresh = 0.1; ///< weight of the last pass in the average
constexpr double kLonger = 1.1, kShorter = 0.66, kLongest = 2.0;
constexpr int kStepPatience = 10; ///< passes without a better bound before the step shrinks

} // namespace

PriceBound::PriceBound(const CoreGraph& graph)
    : m_graph(graph), m_prices(graph.moments(), 0.0), m_bestPrices(m_prices), m_center(m_prices),
      m_priced(graph.labels()), m_messages(graph.messages(), 0.0), m_average(m_prices),
      m_favoured(graph.nodes(), 0), m_sum(graph.mostChoices()), m_base(graph.mostChoices()),
      m_offsets(graph.mostChoices()), m_best(-kInfinite) {
    reprice();
}

void PriceBound::reprice() {
    std::vector<double> before(m_prices.size() + 1, 0.0);
    std::partial_sum(m_prices.begin(), m_prices.end(), before.begin() + 1);
    for (Var v = 0; v < m_graph.nodes(); ++v) {
        double* out = m_priced.data() + m_graph.first(v);
        const std::uint32_t count = m_graph.choices(v);
        std::copy_n(m_graph.cost(v), count, out);
        for (const auto& part : m_graph.parts(v)) {
            const double price = before[part.last] - before[part.first];
            for (std::uint32_t c = 0; price > 0 && c < count; ++c) out[c] += price * part.usage[c];
        }
    }
}

double PriceBound::visit(Var v, bool forward) {
    const std::uint32_t count = m_graph.choices(v);
    const auto links = m_graph.links(v);
    std::copy_n(m_priced.data() + m_graph.first(v), count, m_sum.data());
    std::size_t ahead = 0;
    for (const auto& link : links) {
        ahead += (link.to > v) == forward;
        const double* in = m_messages.data() + link.in;
        for (std::uint32_t c = 0; c < count; ++c) m_sum[c] += in[c];
    }
    const auto least = std::min_element(m_sum.begin(), m_sum.begin() + count);
    m_favoured[v] = static_cast<std::uint16_t>(least - m_sum.begin());
    double taken = *least;
    if (taken == kInfinite) return taken;
    const double offset = taken;
    const double share = 1.0 / double(std::max({ahead, links.size() - ahead, std::size_t{1}}));
    for (const auto& link : links) {
        if ((link.to > v) != forward) continue;
        const double* in = m_messages.data() + link.in;
        const std::uint32_t width = m_graph.choices(link.to);
        std::uint32_t finite = 0;
        for (std::uint32_t c = 0; c < count; ++c) {
            if (m_sum[c] == kInfinite) continue;
            m_base[finite] = share * (m_sum[c] - offset) - in[c];
            m_offsets[finite++] = c * width;
        }
        double* out = m_messages.data() + link.out;
        std::fill_n(out, width, kInfinite);
        minPlusRow(out, width, m_base.data(), m_offsets.data(), finite, link.rows);
        const double low = *std::min_element(out, out + width);
        taken += low;
        if (low == kInfinite) return low;
        for (std::uint32_t c = 0; c < width; ++c) out[c] -= low;
    }
    return taken;
}

double PriceBound::sweep(bool forward, Monitor& monitor) {
    double bound = m_graph.constant();
    const std::size_t count = m_graph.nodes();
    for (std::size_t i = 0; i < count; ++i) {
        const Var v = static_cast<Var>(forward ? i : count - 1 - i);
        monitor.tick(std::size_t{m_graph.choices(v)} * (32 + 16 * m_graph.links(v).size()));
        bound += visit(v, forward);
        if (bound == kInfinite) return bound;
    }
    return bound;
}

void PriceBound::makeExact(const CoreProblem& problem, double mostWork, Monitor& monitor) {
    m_exact = CoreElimination::make(problem, mostWork, monitor);
}

double PriceBound::work() const {
    return m_exact ? m_exact->work() + double(m_graph.labels())
                   : double(2 * m_graph.entries() + 16 * m_graph.labels());
}

/// Message passing, less the price of all room.
double PriceBound::sweepBoth(Monitor& monitor) {
    double bound = sweep(true, monitor);
    if (bound < kInfinite) bound = sweep(false, monitor);
    for (std::size_t t = 0; t < m_prices.size(); ++t) bound -= m_prices[t] * m_graph.room()[t];
    return bound;
}

double PriceBound::pass(Monitor& monitor) {
    if (m_exact) {
        m_last = m_exact->solve(m_priced, monitor) + m_graph.constant();
        if (m_last < kInfinite) m_favoured = m_exact->decode();
        for (std::size_t t = 0; t < m_prices.size(); ++t) m_last -= m_prices[t] * m_graph.room()[t];
    } else {
        m_last = sweepBoth(monitor);
    }
    if (m_last > m_best) {
        m_best = m_last;
        m_bestPrices = m_prices;
    }
    return m_best;
}

void PriceBound::movePrices(double target) {
    const std::vector<double> usage = m_graph.usageOf(m_favoured);
    const double weight = m_started ? kFresh : 1.0;
    m_started = true;
    double length = 0;
    std::vector<double> step(m_prices.size());
    for (std::size_t t = 0; t < step.size(); ++t) {
        m_average[t] += weight * (usage[t] - m_average[t]);
        step[t] = m_average[t] - m_graph.room()[t];
        if (m_prices[t] <= 0 && step[t] < 0) step[t] = 0;
        length += step[t] * step[t];
    }
    if (m_last >= m_best) {
        m_idle = 0;
        m_step = std::min(m_step * kLonger, kLongest);
    } else if (++m_idle >= kStepPatience) {
        m_idle = 0;
        m_step *= kShorter;
        m_prices = m_bestPrices;
    }
    if (length > 0) {
        const double factor = m_step * std::max(target - m_last, 1e-6 * std::abs(target)) / length;
        for (std::size_t t = 0; t < step.size(); ++t) {
            m_prices[t] = std::max(0.0, m_prices[t] + factor * step[t]);
        }
    }
    reprice();
}

} // namespace shardlens::solve
