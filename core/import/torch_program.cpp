// SPDX-License-Identifier: Apache-2.0
// Names of element types, and the rule that tells parameters from inputs.
#include "core/import/torch_program.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace shardlens::torch {

Value Value::ofBoolean(bool value) {
    Value result;
    result.kind = Kind::Boolean;
    result.integer = value ? 1 : 0;
    return result;
}

Value Value::ofInteger(std::int64_t value) {
    Value result;
    result.kind = Kind::Integer;
    result.integer = value;
    return result;
}

Value Value::ofReal(double value) {
    Value result;
    result.kind = Kind::Real;
    result.real = value;
    return result;
}

Value Value::ofText(std::string value) {
    Value result;
    result.kind = Kind::Text;
    result.text = std::move(value);
    return result;
}

Value Value::ofName(std::string value) {
    Value result;
    result.kind = Kind::Name;
    result.text = std::move(value);
    return result;
}

Value Value::ofTensor(TensorId value) {
    Value result;
    result.kind = Kind::Tensor;
    result.tensor = value;
    return result;
}

Value Value::ofList(std::vector<Value> values) {
    Value result;
    result.kind = Kind::List;
    result.items = std::move(values);
    return result;
}

namespace {

/// An element type as FX prints it, as torch names it (twice: some have two names).
struct TypeName {
    std::string_view fx, torch, alias;
    DType dtype;
};

constexpr std::array kTypeNames{
    TypeName{"f64", "float64", "double", DType::F64},
    TypeName{"f32", "float32", "float", DType::F32},
    TypeName{"f16", "float16", "half", DType::F16},
    TypeName{"bf16", "bfloat16", "", DType::BF16},
    TypeName{"f8e4m3fn", "float8_e4m3fn", "", DType::F8E4M3},
    TypeName{"f8e5m2", "float8_e5m2", "", DType::F8E5M2},
    TypeName{"f4e2m1fnx2", "float4_e2m1fn_x2", "", DType::U8}, // two in a byte
    TypeName{"i64", "int64", "long", DType::I64},
    TypeName{"i32", "int32", "int", DType::I32},
    TypeName{"i16", "int16", "short", DType::I16},
    TypeName{"i8", "int8", "char", DType::I8},
    TypeName{"u64", "uint64", "", DType::U64},
    TypeName{"u32", "uint32", "", DType::U32},
    TypeName{"u16", "uint16", "", DType::U16},
    TypeName{"u8", "uint8", "byte", DType::U8},
    TypeName{"b8", "bool", "", DType::Bool},
    TypeName{"c64", "complex64", "cfloat", DType::C64},
    TypeName{"c128", "complex128", "cdouble", DType::C128},
};

} // namespace

std::optional<DType> dtypeFromFx(std::string_view name) {
    const auto found = std::ranges::find(kTypeNames, name, &TypeName::fx);
    if (found == kTypeNames.end()) return std::nullopt;
    return found->dtype;
}

std::optional<DType> dtypeFromTorch(std::string_view name) {
    if (name.starts_with("torch.")) name.remove_prefix(6);
    const auto found = std::ranges::find_if(kTypeNames, [name](const TypeName& type) {
        return type.torch == name || (!type.alias.empty() && type.alias == name);
    });
    if (found == kTypeNames.end()) return std::nullopt;
    return found->dtype;
}

std::optional<DType> dtypeFromScalarType(std::int64_t code) {
    switch (code) {
    case 0:
        return DType::U8;
    case 1:
        return DType::I8;
    case 2:
        return DType::I16;
    case 3:
        return DType::I32;
    case 4:
        return DType::I64;
    case 5:
        return DType::F16;
    case 6:
        return DType::F32;
    case 7:
        return DType::F64;
    case 9:
        return DType::C64;
    case 10:
        return DType::C128;
    case 11:
        return DType::Bool;
    case 15:
        return DType::BF16;
    case 23:
        return DType::F8E5M2;
    case 24:
        return DType::F8E4M3;
    default:
        return std::nullopt;
    }
}

Target split(std::string_view target) {
    Target result;
    const auto colons = target.find("::");
    const auto dot = target.find('.');
    const std::size_t end = std::min(colons, dot);
    if (end == std::string_view::npos) {
        result.base = target;
        return result;
    }
    result.space = target.substr(0, end);
    target.remove_prefix(end + (colons == end ? 2 : 1));
    const auto overload = target.find('.');
    result.base = target.substr(0, overload);
    if (overload != std::string_view::npos) result.overload = target.substr(overload + 1);
    return result;
}

// --- roles --------------------------------------------------------------------------------------

namespace {

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

Role roleFromName(std::string_view name) {
    if (name.starts_with("tangents_")) return Role::Input;
    if (name.starts_with("p_") || contains(name, "parameters_") || contains(name, "_param"))
        return Role::Parameter;
    if (name.starts_with("b_") || contains(name, "buffers_")) return Role::Buffer;
    const auto ends = [&](std::string_view end) {
        return name.ends_with(end) ||
               (name.ends_with("_") && name.substr(0, name.size() - 1).ends_with(end));
    };
    if (ends("weight") || ends("_bias")) return Role::Parameter;
    return Role::Unknown;
}

bool isBatchLike(const Shape& shape, const std::vector<Shape>& indexInputs) {
    return std::ranges::any_of(indexInputs, [&](const Shape& other) {
        if (shape.empty() || other.empty() || shape[0] != other[0] || shape[0] == 1) return false;
        if (shape.size() >= 4) return true;
        return shape.size() >= 2 && other.size() >= 2 && shape[1] == other[1];
    });
}

/// Ops whose first operand is data where their others are weights.
bool readsDataFirst(std::string_view base) {
    constexpr std::array<std::string_view, 15> kOps{"mm",
                                                    "linear",
                                                    "convolution",
                                                    "conv1d",
                                                    "conv2d",
                                                    "matmul",
                                                    "relu",
                                                    "native_layer_norm",
                                                    "layer_norm",
                                                    "native_batch_norm",
                                                    "_fused_rms_norm",
                                                    "gelu",
                                                    "silu",
                                                    "rms_norm",
                                                    "native_group_norm"};
    return std::ranges::find(kOps, base) != kOps.end();
}

bool forwards(std::string_view base) {
    constexpr std::array<std::string_view, 9> kOps{"view",    "_to_copy", "reshape",
                                                   "clone",   "detach",   "_unsafe_view",
                                                   "flatten", "to",       "contiguous"};
    return std::ranges::find(kOps, base) != kOps.end();
}

/// Names of placeholders, and of their views, that some op uses as data.
class DataReaders {
public:
    explicit DataReaders(const Program& program) {
        for (const Placeholder& placeholder : program.placeholders)
            m_source.emplace(placeholder.name, placeholder.name);
        for (const Call& call : program.calls) visit(call);
    }

    bool holds(const std::string& placeholder) const { return m_data.contains(placeholder); }

private:
    const std::string* sourceOf(const Call& call, std::size_t i) const {
        if (i >= call.arguments.size()) return nullptr;
        const Value& value = call.arguments[i].value;
        const auto found =
            value.kind == Value::Kind::Name ? m_source.find(value.text) : m_source.end();
        return found == m_source.end() ? nullptr : &found->second;
    }

    void visit(const Call& call) {
        const std::string_view base = split(call.target).base;
        if (base == "addmm") {
            if (const std::string* source = sourceOf(call, 1)) m_data.insert(*source);
            return;
        }
        const std::string* source = sourceOf(call, 0);
        if (source == nullptr) return;
        if (readsDataFirst(base)) m_data.insert(*source);
        if (forwards(base)) m_source.insert_or_assign(call.name, std::string(*source));
    }

    std::unordered_map<std::string, std::string> m_source; ///< name -> placeholder
    std::unordered_set<std::string> m_data;
};

} // namespace

void assignRoles(Program& program) {
    std::vector<Shape> indexInputs;
    const bool backward =
        std::ranges::any_of(program.placeholders, [](const Placeholder& placeholder) {
            return placeholder.name.starts_with("tangents_");
        });
    for (const Placeholder& placeholder : program.placeholders)
        if (placeholder.spec && !isFloat(placeholder.spec->dtype) &&
            placeholder.role != Role::Parameter && placeholder.role != Role::Buffer)
            indexInputs.push_back(placeholder.spec->shape);
    const DataReaders data(program);
    for (Placeholder& placeholder : program.placeholders) {
        if (placeholder.role != Role::Unknown || !placeholder.spec) continue;
        const TensorSpec& spec = *placeholder.spec;
        placeholder.role = roleFromName(placeholder.name);
        if (placeholder.role == Role::Parameter && !isFloat(spec.dtype))
            placeholder.role = Role::Unknown;
        if (placeholder.role != Role::Unknown) continue;
        const bool kept = backward && !placeholder.name.starts_with("primals_");
        const bool input = !isFloat(spec.dtype) || spec.shape.empty() || kept ||
                           isBatchLike(spec.shape, indexInputs) ||
                           (!backward && data.holds(placeholder.name));
        placeholder.role = input ? Role::Input : Role::Parameter;
    }
}

} // namespace shardlens::torch
