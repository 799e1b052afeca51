// SPDX-License-Identifier: Apache-2.0
// Strided loops over dense tables.
#include "core/solve/table.h"

#include "core/solve/monitor.h"

#include <functional>
#include <numeric>

namespace shardlens::solve {

std::size_t jointSize(Dims dims, const Scope& scope) {
    return std::transform_reduce(scope.begin(), scope.end(), std::size_t{1}, std::multiplies<>{},
                                 [&](Var v) { return std::size_t{dims[v]}; });
}

double jointSizeEstimate(Dims dims, const Scope& scope) {
    return std::transform_reduce(scope.begin(), scope.end(), 1.0, std::multiplies<>{},
                                 [&](Var v) { return double(dims[v]); });
}

std::vector<std::size_t> stridesAlong(Dims dims, const Scope& scope, const Scope& along) {
    std::vector<std::size_t> strides(along.size(), 0);
    std::size_t step = 1;
    for (std::size_t i = scope.size(); i-- > 0; step *= dims[scope[i]]) {
        const auto at = std::ranges::find(along, scope[i]);
        if (at != along.end()) strides[static_cast<std::size_t>(at - along.begin())] += step;
    }
    return strides;
}

void addTable(Dims dims, double* out, const Scope& outScope, const double* in, const Scope& inScope,
              Monitor& monitor) {
    if (outScope.empty()) {
        *out += *in;
        return;
    }
    const Scope outer(outScope.begin(), outScope.end() - 1);
    const std::size_t width = dims[outScope.back()];
    const std::size_t step = stridesAlong(dims, inScope, outScope).back();
    Odometer odometer(dims, outer);
    odometer.add(stridesAlong(dims, inScope, outer));
    do {
        monitor.tick(width);
        const double* from = in + odometer.offset(0);
        if (step == 1) {
            for (std::size_t c = 0; c < width; ++c) out[c] += from[c];
        } else {
            for (std::size_t c = 0; c < width; ++c) out[c] += from[c * step];
        }
        out += width;
    } while (odometer.next());
}

Table diagonal(Dims dims, const Scope& scope, const double* values) {
    Scope distinct;
    for (const Var v : scope) {
        if (!contains(distinct, v)) distinct.push_back(v);
    }
    auto out = std::make_shared_for_overwrite<double[]>(jointSize(dims, distinct));
    Odometer odometer(dims, distinct);
    odometer.add(stridesAlong(dims, scope, distinct));
    double* next = out.get();
    do {
        *next++ = values[odometer.offset(0)];
    } while (odometer.next());
    return {std::move(distinct), std::move(out)};
}

Odometer::Odometer(Dims dims, const Scope& scope) : m_value(scope.size(), 0) {
    for (const Var v : scope) m_dims.push_back(dims[v]);
}

std::size_t Odometer::add(std::vector<std::size_t> strides) {
    m_strides.push_back(std::move(strides));
    m_offset.push_back(0);
    return m_offset.size() - 1;
}

bool Odometer::next() {
    for (std::size_t i = m_dims.size(); i-- > 0;) {
        if (++m_value[i] < m_dims[i]) {
            for (std::size_t t = 0; t < m_offset.size(); ++t) m_offset[t] += m_strides[t][i];
            return true;
        }
        for (std::size_t t = 0; t < m_offset.size(); ++t) {
            m_offset[t] -= m_strides[t][i] * (m_dims[i] - 1);
        }
        m_value[i] = 0;
    }
    return false;
}

} // namespace shardlens::solve
