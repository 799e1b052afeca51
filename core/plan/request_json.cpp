// SPDX-License-Identifier: Apache-2.0
// See request_json.h.
#include "core/plan/request_json.h"

#include "core/error.h"

#include <fmt/format.h>

#include <cmath>

namespace shardlens::request_json {

void refuse(const std::string& problem, const std::string& hint) {
    throw InputError(problem, "plan request", hint);
}

std::string shown(const Json& value) {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return text;
}

std::string textOf(const Json& value, std::string_view key) {
    if (!value.is_string()) refuse(fmt::format("'{}' must be a text, not {}", key, shown(value)));
    return value.get<std::string>();
}

std::int64_t integerOf(const Json& value, std::string_view key, std::int64_t least,
                       std::int64_t most) {
    const bool tooLarge =
        value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
    if (!value.is_number_integer() || tooLarge || value.get<std::int64_t>() < least ||
        value.get<std::int64_t>() > most)
        refuse(fmt::format("'{}' must be a whole number from {} to {}, not {}", key, least, most,
                           shown(value)));
    return value.get<std::int64_t>();
}

double numberOf(const Json& value, std::string_view key) {
    if (!value.is_number()) refuse(fmt::format("'{}' must be a number, not {}", key, shown(value)));
    const double number = value.get<double>();
    if (!std::isfinite(number) || number < 0)
        refuse(fmt::format("'{}' must be finite and not negative, not {}", key, shown(value)));
    return number;
}

const Json& arrayOf(const Json& value, std::string_view key) {
    if (!value.is_array()) refuse(fmt::format("'{}' must be a list", key));
    return value;
}

} // namespace shardlens::request_json
