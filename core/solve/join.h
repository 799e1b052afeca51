// SPDX-License-Identifier: Apache-2.0
// One step of min-sum elimination: adds tables up over their joint variables and minimises some of
// these out, without writing the joint table down. How to loop is decided once, from the scopes;
// run() may then be called for many values (prices of the memory limit change values only).
#pragma once

#include "core/solve/monitor.h"
#include "core/solve/table.h"

namespace shardlens::solve {

class Join {
public:
    /// @param inputs scopes of the tables; each variable of them is in `keep` or in `drop`
    /// @param keep   variables of the result; preferably those needed longest come first
    /// @param drop   variables to minimise out
    Join(Dims dims, std::vector<Scope> inputs, const Scope& keep, const Scope& drop);

    /// Scope of the result: `keep` in the order the result is laid out.
    const Scope& scope() const { return m_scope; }
    std::size_t size() const { return m_size; }

    /// @param out `size()` values, written
    void run(Dims dims, std::span<const double* const> inputs, double* out, Monitor& monitor) const;

private:
    /// Inputs that are read as one table.
    struct Operand {
        std::vector<std::size_t> inputs;
        Scope scope;                      ///< as it is read
        bool copied = false;              ///< written down in the order of `scope` before the loops
        std::vector<std::size_t> strides; ///< along the outer variables
        std::vector<std::uint32_t> dropOffset; ///< by joint value of the dropped variables
    };
    struct Layout;
    class Loop;

    Layout layoutFor(Dims dims, const Var* inner, const Scope& keep) const;
    std::vector<Operand> group(Dims dims, const std::vector<std::size_t>& inputs,
                               const Scope& order, double full) const;
    void place(Dims dims, Operand& operand) const;

    std::vector<Scope> m_inputs;
    Scope m_drop, m_outer, m_scope;
    std::size_t m_width = 1; ///< choices of the inner variable, along which vectors run
    std::size_t m_dropSize = 1, m_size = 1;
    std::vector<Operand> m_rows; ///< operands with the inner variable, which comes last in them
    std::vector<Operand> m_bases;
};

} // namespace shardlens::solve
