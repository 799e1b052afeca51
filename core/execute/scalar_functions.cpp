// SPDX-License-Identifier: Apache-2.0
// Definitions follow ONNX where it has the function (onnx/defs/math), else PyTorch. The rows are in
// scalar_unary.cpp and scalar_several.cpp.
#include "core/execute/scalar_functions.h"

#include "core/execute/scalar_tables.h"

#include <algorithm>

namespace shardlens {

const ScalarFunction* findScalarFunction(std::string_view name) {
    for (const std::span<const ScalarFunction> table :
         {scalars::unaryFunctions(), scalars::severalFunctions()})
        if (const auto found = std::ranges::find(table, name, &ScalarFunction::name);
            found != table.end())
            return &*found;
    return nullptr;
}

ScalarSettings scalarSettings(const ScalarFunction& function, const Attributes& attributes,
                              DType from, DType to) {
    ScalarSettings settings;
    settings.alpha = attributes.number(function.alphaName, function.alpha);
    settings.beta = attributes.number(function.betaName, function.beta);
    settings.flag = attributes.text("approximate") == "tanh" ||
                    attributes.text("direction") == "left" || attributes.integer("fmod", 0) != 0;
    settings.from = from;
    settings.to = to;
    return settings;
}

} // namespace shardlens
