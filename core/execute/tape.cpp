// SPDX-License-Identifier: Apache-2.0
// Recording, and the sweep back. Entry 0 stands for every constant.
#include "core/execute/tape.h"

namespace shardlens {

Recorded Tape::variable(double value) {
    if (m_entries.empty()) m_entries.emplace_back();
    m_entries.emplace_back();
    return {value, this, m_entries.size() - 1};
}

Recorded Tape::result(double value, const Recorded& a, double slopeA, const Recorded& b,
                      double slopeB) {
    Tape* tape = a.tape() != nullptr ? a.tape() : b.tape();
    if (tape == nullptr) return {value};
    tape->m_entries.push_back({{a.index(), b.index()}, {slopeA, slopeB}});
    return {value, tape, tape->m_entries.size() - 1};
}

void Tape::seed(const Recorded& number, double gradient) {
    if (number.tape() == nullptr) return;
    m_seeds.resize(m_entries.size(), 0.0);
    m_seeds[number.index()] += gradient;
}

std::vector<double> Tape::gradients() const {
    std::vector<double> gradients = m_seeds;
    gradients.resize(m_entries.size(), 0.0);
    for (std::size_t i = m_entries.size(); i-- > 0;) {
        const Entry& entry = m_entries[i];
        for (std::size_t k = 0; k < entry.from.size(); ++k)
            if (entry.from[k] != 0) gradients[entry.from[k]] += entry.slope[k] * gradients[i];
    }
    return gradients;
}

} // namespace shardlens
