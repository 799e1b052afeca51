// SPDX-License-Identifier: Apache-2.0
// Statements of a printed FX graph as calls: nested expressions are taken apart, methods and
// functions of torch become operators of aten, and types in annotations are read.
#pragma once

#include "core/import/python_text.h"
#include "core/import/torch_program.h"
#include "core/import/torch_symbols.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace shardlens::fx {

/// A type as FX prints it: "f32[8, s0]", "bf16[2][1]cuda:0", "Sym(s0)".
struct Annotation {
    std::optional<DType> dtype;
    std::vector<std::string_view> dims;
    std::string_view symbol; ///< of "Sym(…)"

    /// std::nullopt if it is no tensor or a size cannot be found.
    std::optional<TensorSpec> spec(torch::Symbols& symbols) const;
};
std::optional<Annotation> parseAnnotation(std::string_view text);

/// Builds the calls of one `forward` function.
class Statements {
public:
    Statements(torch::Program& program, torch::Symbols& symbols)
        : m_program(program), m_symbols(symbols) {}

    void addName(const std::string& name) { m_known.insert(name); }
    /// `name: annotation = expression`; the annotation may be empty.
    void assign(const std::string& name, std::string_view annotation,
                const python::Expression& expression, std::size_t line);
    void returned(const python::Expression& expression, std::size_t line);
    void setScope(std::string scope) { m_scope = std::move(scope); }
    /// Which results are read, and what they are; after the last statement.
    /// @param trainingForward the outputs are followed by what the backward pass needs
    void finish(bool trainingForward);

private:
    torch::Value lower(const python::Expression& expression, std::size_t line);
    torch::Value lowerCall(const python::Expression& call, std::size_t line, torch::Call& into);
    torch::Value emit(torch::Call call);
    torch::Call makeCall(std::string target, std::size_t line) const;
    bool isVariable(const std::string& path) const;
    std::optional<torch::Value> lowerSpecial(const std::string& path,
                                             const python::Expression& call, std::size_t line);
    bool fill(const python::Expression& expression, torch::Call& call);

    torch::Program& m_program;
    torch::Symbols& m_symbols;
    std::string m_scope;
    std::unordered_set<std::string> m_known;
    std::unordered_map<std::string, std::optional<TensorSpec>> m_specs; ///< annotated names
    std::size_t m_temporaries = 0;
};

} // namespace shardlens::fx
