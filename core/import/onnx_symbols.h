// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions of an ONNX model's inputs, and the numbers they are bound to: what the user
// says, else the batch or sequence length for names that look like one, else 1 with a warning.
#pragma once

#include "core/import/importer.h"
#include "core/import/onnx_model.h"

#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace shardlens::onnx {

class Symbols {
public:
    /// Collects the names over the real inputs (those that are not initializers) and binds them.
    /// A dimension that is declared without a name is called "<input>.dim<index>".
    /// @throws InputError for a binding to a name the model does not have, or out of range, and
    /// for declared sizes that are impossible
    Symbols(const std::vector<const ValueInfo*>& inputs, const ImportOptions& options,
            const std::string& where);

    /// Shape of a real input; std::nullopt when not even the rank is declared.
    std::optional<Shape> inputShape(const ValueInfo& input) const;

    /// The declared spec of any value, if every dimension of it can be told. A hint only.
    std::optional<TensorSpec> declared(const ValueInfo& value) const;

    const std::map<std::string, std::int64_t>& bindings() const { return m_bindings; }
    const std::vector<std::string>& warnings() const { return m_warnings; }
    bool anyGuessed() const { return m_guessed; } ///< some binding did not come from the user
    bool sequenceGuessed() const { return m_sequenceGuessed; } ///< a sequence length among them

private:
    /// What the name alone tells about a dimension.
    struct Use {
        std::string name;
        bool indices = false; ///< of a matrix of integers: token ids, masks
    };

    void collect(const ValueInfo& input, std::vector<Use>& uses, const std::string& where);
    void checkBindings(const std::vector<Use>& uses, const std::string& where) const;
    void bind(const Use& use);
    std::optional<std::int64_t> evaluate(std::string_view text) const;
    std::optional<std::int64_t> sizeOf(const ValueInfo& value, std::size_t index) const;

    const ImportOptions& m_options;
    std::unordered_set<std::string> m_names; ///< all that may be bound
    std::map<std::string, std::int64_t> m_bindings;
    std::vector<std::string> m_warnings;
    bool m_guessed = false;
    bool m_sequenceGuessed = false;
};

} // namespace shardlens::onnx
