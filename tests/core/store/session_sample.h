// SPDX-License-Identifier: Apache-2.0
// The session the tests of the store start from.
#pragma once

#include "core/store/session.h"

namespace shardlens::test {

inline NewSession sampleSession() {
    NewSession content;
    content.model = {"models/tiny.onnx",
                     "/data/models/tiny.onnx",
                     "ONNX",
                     4711,
                     1'700'000'000'123'456'789,
                     "sha1:0123456789abcdef0123456789abcdef01234567"};
    content.graph = R"({"ops":[{"name":"schön","kind":"MatMul"}]})";
    content.request.cluster = "dgx-a100";
    content.request.mesh = {{"dp", 4}, {"tp", 2}};
    content.request.memoryLimitBytes = 0.1;
    content.request.pins = {{"layers.*.q_proj", "n@tp"}};
    content.viewState = {{"zoom", "[0.5,1e-3]"}, {"dock", "\"AAAA/w==\""}};
    return content;
}

} // namespace shardlens::test
