// SPDX-License-Identifier: Apache-2.0
// The templates, a function a family. Each adds the whole graph to context.graph.
#pragma once

#include "core/import/templates/context.h"

namespace shardlens::hf {

void buildLlama(Context& context);    ///< llama, mistral, qwen2, qwen3, phi3, gemma
void buildMixture(Context& context);  ///< mixtral, qwen2_moe, qwen3_moe
void buildDeepSeek(Context& context); ///< deepseek_v2, deepseek_v3
void buildGpt2(Context& context);
void buildGptNeoX(Context& context);
void buildBert(Context& context);
void buildT5(Context& context);
void buildViT(Context& context);
void buildResNet(Context& context);

} // namespace shardlens::hf
