// SPDX-License-Identifier: Apache-2.0
// The loops are: outer variables of the result, then the dropped variables, then the inner variable
// of the result along which vectors run. Tables without the inner variable are summed up once for a
// pass ("bases"); tables with it are the rows that the kernel reads. Small tables are added into
// larger ones first where that is cheap, so that one row table is the rule.
#include "core/solve/join.h"

#include "core/solve/min_plus.h"
#include "core/solve/problem.h"

#include <cmath>
#include <numeric>

namespace shardlens::solve {
namespace {

constexpr std::size_t kChunk = 1 << 12; ///< summands a pass of the kernel
constexpr double kMergeFactor = 4;      ///< merge tables if the union is this much below the joint

Scope without(const Scope& scope, Var var) {
    Scope rest;
    std::ranges::copy_if(scope, std::back_inserter(rest), [&](Var v) { return v != var; });
    return rest;
}

Scope concatenated(Scope first, const Scope& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

/// The variables of `order` that occur in a or b, in that order.
Scope unionAlong(const Scope& order, const Scope& a, const Scope& b) {
    Scope out;
    std::ranges::copy_if(order, std::back_inserter(out),
                         [&](Var v) { return contains(a, v) || contains(b, v); });
    return out;
}

} // namespace

/// A way to loop, with a rough price in nanoseconds.
struct Join::Layout {
    double cost = 0;
    std::vector<Operand> rows, bases;
};

std::vector<Join::Operand> Join::group(Dims dims, const std::vector<std::size_t>& inputs,
                                       const Scope& order, double full) const {
    std::vector<Operand> operands;
    for (const std::size_t input : inputs) {
        Operand next;
        next.inputs = {input};
        next.scope = m_inputs[input];
        bool merged = true;
        while (merged) {
            merged = false;
            for (auto it = operands.begin(); it != operands.end(); ++it) {
                Scope both = unionAlong(order, it->scope, next.scope);
                if (kMergeFactor * jointSizeEstimate(dims, both) > full) continue;
                next.inputs.insert(next.inputs.end(), it->inputs.begin(), it->inputs.end());
                next.scope = std::move(both);
                next.copied = merged = true;
                operands.erase(it);
                break;
            }
        }
        operands.push_back(std::move(next));
    }
    return operands;
}

Join::Layout Join::layoutFor(Dims dims, const Var* inner, const Scope& keep) const {
    const Scope outer = inner ? without(keep, *inner) : keep;
    const double outers = jointSizeEstimate(dims, outer);
    const double drops = jointSizeEstimate(dims, m_drop);
    const double width = inner ? dims[*inner] : 1;
    const Scope order = concatenated(outer, m_drop);
    const Scope full = inner ? concatenated(order, {*inner}) : order;
    std::vector<std::size_t> with, withoutInner;
    for (std::size_t i = 0; i < m_inputs.size(); ++i) {
        (inner && contains(m_inputs[i], *inner) ? with : withoutInner).push_back(i);
    }
    Layout layout;
    layout.rows = group(dims, with, full, outers * drops * width);
    layout.bases = group(dims, withoutInner, order, outers * drops);
    for (Operand& row : layout.rows) {
        if (row.scope.back() != *inner) {
            row.copied = true;
            row.scope = unionAlong(full, row.scope, {});
        }
    }
    for (Operand& base : layout.bases) {
        const bool strided = !m_drop.empty() && contains(base.scope, m_drop.back()) &&
                             base.scope.back() != m_drop.back();
        if (strided && 2 * jointSizeEstimate(dims, base.scope) <= outers * drops) {
            base.copied = true;
            base.scope = unionAlong(order, base.scope, {});
        }
    }
    const double steps = width < 4 ? 2 * width : std::ceil(width / 4);
    const double perStep = 0.15 + 0.15 * double(layout.rows.size());
    const double perBase = 0.2 + 0.2 * double(layout.bases.size());
    layout.cost = outers * (drops * (steps * perStep + perBase) + 10);
    for (const auto* operands : {&layout.rows, &layout.bases}) {
        for (const Operand& o : *operands) {
            if (o.copied) layout.cost += jointSizeEstimate(dims, o.scope) * double(o.inputs.size());
        }
    }
    return layout;
}

void Join::place(Dims dims, Operand& operand) const {
    operand.strides = stridesAlong(dims, operand.scope, m_outer);
    Odometer odometer(dims, m_drop);
    odometer.add(stridesAlong(dims, operand.scope, m_drop));
    operand.dropOffset.reserve(m_dropSize);
    do {
        operand.dropOffset.push_back(static_cast<std::uint32_t>(odometer.offset(0)));
    } while (odometer.next());
}

Join::Join(Dims dims, std::vector<Scope> inputs, const Scope& keep, const Scope& drop)
    : m_inputs(std::move(inputs)), m_drop(drop) {
    const Var* inner = nullptr;
    Layout best = layoutFor(dims, nullptr, keep);
    if (!keep.empty()) best.cost = kInfinite;
    for (const Var& candidate : keep) {
        Layout layout = layoutFor(dims, &candidate, keep);
        if (layout.cost <= best.cost) {
            best = std::move(layout);
            inner = &candidate;
        }
    }
    m_outer = inner ? without(keep, *inner) : Scope{};
    m_scope = inner ? concatenated(m_outer, {*inner}) : Scope{};
    m_width = inner ? dims[*inner] : 1;
    m_dropSize = jointSize(dims, m_drop);
    m_size = jointSize(dims, m_scope);
    m_rows = std::move(best.rows);
    m_bases = std::move(best.bases);
    for (Operand& row : m_rows) place(dims, row);
    for (Operand& base : m_bases) place(dims, base);
}

/// The state of one run(): where the operands are and the buffers of a pass.
class Join::Loop {
public:
    Loop(const Join& join, Dims dims, std::span<const double* const> inputs, Monitor& monitor)
        : m_join(join), m_odometer(dims, join.m_outer) {
        for (const Operand& row : join.m_rows)
            m_rows.push_back(resolve(dims, row, inputs, monitor));
        for (const Operand& base : join.m_bases)
            m_bases.push_back(resolve(dims, base, inputs, monitor));
        const std::size_t chunk = std::min(kChunk, join.m_dropSize);
        m_base.resize(chunk, 0.0);
        m_packed.resize(chunk);
        m_offsets.resize(2 * chunk);
        if (m_rows.size() > 2) {
            m_sum.resize(chunk * join.m_width);
            m_sumOffset.resize(chunk);
            for (std::size_t e = 0; e < chunk; ++e) {
                m_sumOffset[e] = static_cast<std::uint32_t>(e * join.m_width);
            }
        }
    }

    void run(double* out, Monitor& monitor) {
        const std::size_t width = m_join.m_width, drops = m_join.m_dropSize;
        do {
            std::fill_n(out, width, kInfinite);
            for (std::size_t first = 0; first < drops; first += kChunk) {
                const std::size_t count = std::min(kChunk, drops - first);
                monitor.tick(count * width);
                const std::size_t finite = sumBases(first, count);
                if (finite > 0) reduce(out, first, count, finite);
            }
            out += width;
        } while (m_odometer.next());
    }

private:
    struct Source {
        const double* values;
        const std::uint32_t* dropOffset;
        bool contiguous; ///< dropOffset counts up by one
        std::size_t table;
    };

    Source resolve(Dims dims, const Operand& operand, std::span<const double* const> inputs,
                   Monitor& monitor) {
        const double* values = inputs[operand.inputs.front()];
        if (operand.copied) {
            m_copies.emplace_back(jointSize(dims, operand.scope), 0.0);
            values = m_copies.back().data();
            for (const std::size_t i : operand.inputs) {
                addTable(dims, m_copies.back().data(), operand.scope, inputs[i], m_join.m_inputs[i],
                         monitor);
            }
        }
        const auto& offset = operand.dropOffset;
        const bool contiguous = offset.back() + 1 == offset.size() &&
                                std::ranges::is_sorted(offset, std::less_equal<>{});
        return {values, offset.data(), contiguous, m_odometer.add(operand.strides)};
    }

    /// Writes the sums of the base tables for a pass. @return how many are finite
    std::size_t sumBases(std::size_t first, std::size_t count) {
        if (m_bases.empty()) return count;
        std::fill_n(m_base.begin(), count, 0.0);
        for (const Source& base : m_bases) {
            const double* from = base.values + m_odometer.offset(base.table);
            const std::uint32_t* offset = base.dropOffset + first;
            if (base.contiguous) {
                from += first;
                for (std::size_t e = 0; e < count; ++e) m_base[e] += from[e];
            } else {
                for (std::size_t e = 0; e < count; ++e) m_base[e] += from[offset[e]];
            }
        }
        std::size_t finite = 0;
        for (std::size_t e = 0; e < count; ++e) finite += m_base[e] < kInfinite;
        return finite;
    }

    void reduce(double* out, std::size_t first, std::size_t count, std::size_t finite) {
        const double* base = m_base.data();
        const std::uint32_t* offset[2] = {};
        for (std::size_t r = 0; r < std::min<std::size_t>(2, m_rows.size()); ++r) {
            offset[r] = m_rows[r].dropOffset + first;
        }
        if (m_rows.size() > 2) {
            sumRows(first, count);
            offset[0] = m_sumOffset.data();
        }
        if (finite < count) pack(base, offset, count);
        const auto at = [&](std::size_t r) {
            return m_rows[r].values + m_odometer.offset(m_rows[r].table);
        };
        const std::size_t width = m_join.m_width;
        switch (m_rows.size()) {
        case 0:
            *out = std::min(*out, *std::min_element(base, base + finite));
            break;
        case 1:
            minPlusRow(out, width, base, offset[0], finite, at(0));
            break;
        case 2:
            minPlusRow2(out, width, base, offset[0], offset[1], finite, at(0), at(1));
            break;
        default:
            minPlusRow(out, width, base, offset[0], finite, m_sum.data());
        }
    }

    /// Leaves infinite summands out.
    void pack(const double*& base, const std::uint32_t* (&offset)[2], std::size_t count) {
        std::uint32_t* packed[2] = {m_offsets.data(), m_offsets.data() + m_base.size()};
        std::size_t n = 0;
        for (std::size_t e = 0; e < count; ++e) {
            if (!(base[e] < kInfinite)) continue;
            m_packed[n] = base[e];
            for (int r = 0; r < 2; ++r) {
                if (offset[r]) packed[r][n] = offset[r][e];
            }
            ++n;
        }
        base = m_packed.data();
        for (int r = 0; r < 2; ++r) {
            if (offset[r]) offset[r] = packed[r];
        }
    }

    /// Three row tables or more: their sum for this pass is written down.
    void sumRows(std::size_t first, std::size_t count) {
        const std::size_t width = m_join.m_width;
        std::fill_n(m_sum.begin(), count * width, 0.0);
        for (const Source& row : m_rows) {
            const double* values = row.values + m_odometer.offset(row.table);
            for (std::size_t e = 0; e < count; ++e) {
                const double* from = values + row.dropOffset[first + e];
                double* to = m_sum.data() + e * width;
                for (std::size_t c = 0; c < width; ++c) to[c] += from[c];
            }
        }
    }

    const Join& m_join;
    Odometer m_odometer;
    std::vector<Source> m_rows, m_bases;
    std::vector<std::vector<double>> m_copies;
    std::vector<double> m_base, m_packed, m_sum;
    std::vector<std::uint32_t> m_offsets, m_sumOffset;
};

void Join::run(Dims dims, std::span<const double* const> inputs, double* out,
               Monitor& monitor) const {
    Loop(*this, dims, inputs, monitor).run(out, monitor);
}

} // namespace shardlens::solve
