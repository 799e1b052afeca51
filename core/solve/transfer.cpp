// SPDX-License-Identifier: Apache-2.0
// Factors of the bucket tree: one unary per body node, then the edges of the block.
#include "core/solve/transfer.h"

#include "core/solve/min_plus.h"

#include <cmath>

namespace shardlens::solve {

bool sameBlock(const Problem& problem, const Choices& choices, const Block& a, const Block& b) {
    const auto sameNode = [&](NodeId u, NodeId v) {
        return u == v || (problem.nodes[u].cost == problem.nodes[v].cost &&
                          problem.nodes[u].usage == problem.nodes[v].usage);
    };
    const auto sameChoices = [&](NodeId u, NodeId v) {
        return choices.setOf(u) == choices.setOf(v);
    };
    return a.edges == b.edges && a.carried == b.carried &&
           std::ranges::equal(a.body, b.body, sameNode) &&
           std::ranges::equal(a.shared, b.shared, sameChoices);
}

Transfer::Transfer(const Choices& choices, Block block, Monitor& monitor)
    : m_block(std::move(block)) {
    for (const NodeId id : m_block.body) m_dims.push_back(choices.count(id));
    for (const Var place : m_block.carried) m_dims.push_back(m_dims[place]);
    for (const NodeId id : m_block.shared) m_dims.push_back(choices.count(id));

    for (std::size_t i = 0; i < m_block.shared.size(); ++i) m_kept.push_back(m_block.sharedVar(i));
    for (std::size_t i = 0; i < m_block.carried.size(); ++i) m_kept.push_back(m_block.entry(i));
    m_statesEstimate = jointSizeEstimate(m_dims, m_block.carried);
    m_kept.insert(m_kept.end(), m_block.carried.begin(), m_block.carried.end());
    m_entries = jointSizeEstimate(m_dims, m_kept);
    m_value.resize(m_dims.size(), 0);

    std::vector<Scope> scopes;
    for (Var p = 0; p < m_block.body.size(); ++p) scopes.push_back({p});
    for (const Block::Edge& edge : m_block.edges) {
        scopes.push_back(edge.u == edge.v ? Scope{edge.u} : Scope{edge.u, edge.v});
    }
    m_order = eliminationOrder(m_dims, scopes, m_kept, {}, monitor);
    if (m_entries > 1e15) return; // never computed: see lower()
    m_states = jointSize(m_dims, m_block.carried);
    m_shared = static_cast<std::size_t>(m_entries) / (m_states * m_states);
    m_tree.emplace(m_dims, std::move(scopes), m_order.order, monitor);
}

void Transfer::compute(Choices& choices, const Weights& weights, Monitor& monitor) {
    m_squares.clear();
    m_products.clear();
    m_interiors.clear();
    const auto nodeOf = [&](Var local) {
        const std::size_t bodySize = m_block.body.size(), carried = m_block.carried.size();
        if (local < bodySize) return m_block.body[local];
        if (local < bodySize + carried) return m_block.body[m_block.carried[local - bodySize]];
        return m_block.shared[local - bodySize - carried];
    };
    std::size_t factor = 0;
    for (const NodeId id : m_block.body) m_tree->setFactor(factor++, choices.unary(id, weights));
    for (const Block::Edge& edge : m_block.edges) {
        const bool forbid = weights.edgesForbidOnly;
        m_tree->setFactor(factor++,
                          edge.u == edge.v
                              ? choices.diagonal(*edge.cost, nodeOf(edge.u), forbid)
                              : choices.pair(edge.cost, nodeOf(edge.u), nodeOf(edge.v), forbid));
    }
    m_tree->eliminate(monitor);
    const std::size_t size = jointSize(m_dims, m_kept), n = m_states;
    auto matrix = std::make_shared_for_overwrite<double[]>(size);
    std::fill_n(matrix.get(), size, m_tree->constant());
    for (const Table* table : m_tree->remaining()) {
        addTable(m_dims, matrix.get(), m_kept, table->values.get(), table->scope, monitor);
    }
    Power& first = m_squares.emplace_back();
    for (std::size_t s = 0; s < m_shared; ++s) {
        first.push_back({Values(matrix, matrix.get() + s * n * n)});
    }
    m_settled.assign(m_shared, {});
    m_rowOffset.resize(n);
    for (std::size_t e = 0; e < n; ++e) m_rowOffset[e] = static_cast<std::uint32_t>(e * n);
}

Transfer::Slice Transfer::multiply(const Slice& a, const Slice& b, Monitor& monitor) const {
    const std::size_t n = m_states;
    auto out = std::make_shared_for_overwrite<double[]>(n * n);
    for (std::size_t i = 0; i < n; ++i) {
        monitor.tick(n * n);
        std::fill_n(out.get() + i * n, n, kInfinite);
        minPlusRow(out.get() + i * n, n, a.values.get() + i * n, m_rowOffset.data(), n,
                   b.values.get());
    }
    return {std::move(out), a.constant + b.constant};
}

bool Transfer::differByConstant(const Slice& a, const Slice& b, double& step) const {
    const double *from = a.values.get(), *to = b.values.get();
    bool known = false;
    double difference = 0;
    for (std::size_t i = 0; i < m_states * m_states; ++i) {
        if (from[i] == kInfinite || to[i] == kInfinite) {
            if (from[i] != to[i]) return false;
            continue;
        }
        if (known && to[i] - from[i] != difference) return false;
        difference = to[i] - from[i];
        known = true;
    }
    step = difference + b.constant - a.constant;
    return true;
}

/// T to the 2^k, from the power before.
Transfer::Power Transfer::squared(std::size_t k, Monitor& monitor) {
    const Power& before = m_squares[k - 1];
    Power out;
    for (std::size_t s = 0; s < m_shared; ++s) {
        Settled& settled = m_settled[s];
        if (settled.exponent < k - 1) {
            out.push_back(before[s]);
            out.back().constant += std::ldexp(settled.step, int(k - 1 - settled.exponent));
            continue;
        }
        out.push_back(multiply(before[s], before[s], monitor));
        double step = 0;
        if (differByConstant(before[s], out.back(), step)) {
            settled = {k - 1, step};
            out.back() = {before[s].values, before[s].constant + step};
        }
    }
    return out;
}

const Transfer::Power& Transfer::square(std::size_t k, Monitor& monitor) {
    while (m_squares.size() <= k) m_squares.push_back(squared(m_squares.size(), monitor));
    return m_squares[k];
}

/// a, a product of squares up to 2^highest, times T to the 2^k, k above that.
Transfer::Power Transfer::times(const Power& a, std::size_t highest, std::size_t k,
                                Monitor& monitor) {
    const Power& b = square(k, monitor);
    Power out;
    for (std::size_t s = 0; s < m_shared; ++s) {
        const Settled& settled = m_settled[s];
        if (settled.exponent <= highest) { // a ends with a settled power, which only grows
            out.push_back(a[s]);
            out.back().constant += std::ldexp(settled.step, int(k - settled.exponent));
        } else {
            out.push_back(multiply(a[s], b[s], monitor));
        }
    }
    return out;
}

Values Transfer::whole(const Power& power) const {
    const std::size_t size = m_states * m_states;
    auto out = std::make_shared_for_overwrite<double[]>(m_shared * size);
    for (std::size_t s = 0; s < m_shared; ++s) {
        const Slice& slice = power[s];
        std::transform(slice.values.get(), slice.values.get() + size, out.get() + s * size,
                       [&](double value) { return value + slice.constant; });
    }
    return out;
}

Values Transfer::power(std::size_t n, Monitor& monitor) {
    Product& product = m_products[n];
    if (product.partial.empty()) {
        for (std::size_t k = 0; n >> k != 0; ++k) {
            if (((n >> k) & 1) == 0) continue;
            product.partial.push_back(
                product.partial.empty()
                    ? square(k, monitor)
                    : times(product.partial.back(), product.bits.back(), k, monitor));
            product.bits.push_back(k);
        }
    }
    return whole(product.partial.back());
}

std::size_t Transfer::between(const Slice& a, const Slice& b, std::size_t entry,
                              std::size_t exit) const {
    const std::size_t n = m_states;
    const double* row = a.values.get() + entry * n;
    const double* column = b.values.get() + exit;
    std::size_t best = 0;
    for (std::size_t z = 1; z < n; ++z) {
        if (row[z] + column[z * n] < row[best] + column[best * n]) best = z;
    }
    return best;
}

void Transfer::splitSquare(std::size_t k, std::size_t shared, std::size_t entry, std::size_t exit,
                           std::span<std::size_t> out) const {
    if (k == 0) return;
    const Slice& half = m_squares[k - 1][shared];
    const std::size_t middle = out.size() / 2;
    out[middle] = between(half, half, entry, exit);
    splitSquare(k - 1, shared, entry, out[middle], out.first(middle));
    splitSquare(k - 1, shared, out[middle], exit, out.subspan(middle + 1));
}

std::vector<std::size_t> Transfer::path(std::size_t shared, std::size_t entry, std::size_t exit,
                                        std::size_t n) const {
    std::vector<std::size_t> states(n - 1);
    const Product& product = m_products.at(n);
    std::span<std::size_t> left(states);
    for (std::size_t j = product.bits.size(); j-- > 0;) {
        const std::size_t k = product.bits[j], inside = (std::size_t{1} << k) - 1;
        if (j == 0) {
            splitSquare(k, shared, entry, exit, left);
            break;
        }
        const std::size_t state =
            between(product.partial[j - 1][shared], m_squares[k][shared], entry, exit);
        left[left.size() - inside - 1] = state;
        splitSquare(k, shared, state, exit, left.last(inside));
        left = left.first(left.size() - inside - 1);
        exit = state;
    }
    return states;
}

void Transfer::setKept(std::size_t shared, std::size_t entry, std::size_t exit) {
    std::size_t joint = (shared * m_states + entry) * m_states + exit;
    for (std::size_t i = m_kept.size(); i-- > 0;) {
        m_value[m_kept[i]] = static_cast<std::uint32_t>(joint % m_dims[m_kept[i]]);
        joint /= m_dims[m_kept[i]];
    }
}

const std::vector<std::uint32_t>& Transfer::interior(std::size_t shared, std::size_t entry,
                                                     std::size_t exit) {
    auto& known = m_interiors[(shared * m_states + entry) * m_states + exit];
    if (known.empty()) {
        setKept(shared, entry, exit);
        m_tree->decode(m_value);
        known.assign(m_value.begin(),
                     m_value.begin() + static_cast<std::ptrdiff_t>(m_block.body.size()));
    }
    return known;
}

} // namespace shardlens::solve
