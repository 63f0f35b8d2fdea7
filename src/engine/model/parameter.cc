#include "engine/model/parameter.h"

#include <utility>

namespace ridgeline {
namespace {

class ShapeBuilder {
 public:
  explicit ShapeBuilder(ModelShape& shape) : shape_(shape) {}

  int Vector(std::string name, int64_t size, Init init) { return Add({{std::move(name), 0, 1}}, 1, size, init); }

  // Adds a linear layer's weight; (in, out) if the family stores it so.
  int Linear(std::string name, int64_t out, int64_t in) {
    if (shape_.weights_in_out) std::swap(out, in);
    return Add({{std::move(name), 0, out}}, out, in, Init::kNormal);
  }

  int Matrix(std::string name, int64_t rows, int64_t cols) {
    return Add({{std::move(name), 0, rows}}, rows, cols, Init::kNormal);
  }

  // Adds several (out_i, in) matrices, stacked.
  int Stacked(const std::vector<std::pair<std::string, int64_t>>& named_rows, int64_t cols) {
    std::vector<ParameterPart> parts;
    int64_t rows = 0;
    for (const auto& [name, part_rows] : named_rows) {
      parts.push_back({name, rows, part_rows});
      rows += part_rows;
    }
    return Add(std::move(parts), rows, cols, Init::kNormal);
  }

 private:
  int Add(std::vector<ParameterPart> parts, int64_t rows, int64_t cols, Init init) {
    shape_.parameters.push_back({std::move(parts), rows, cols, init});
    return static_cast<int>(shape_.parameters.size()) - 1;
  }
  ModelShape& shape_;
};

void BuildLlama(const RunSpec& s, ModelShape& shape, ShapeBuilder& add) {
  const int64_t h = s.hidden;
  const int64_t q = s.heads * s.head_dim;
  const int64_t kv = s.kv_heads * s.head_dim;
  shape.rotary = true;
  shape.gated = true;
  shape.embedding = add.Matrix("model.embed_tokens.weight", s.vocab, h);
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    LayerParameters l;
    l.norm1 = add.Vector(prefix + "input_layernorm.weight", h, Init::kOnes);
    l.qkv = add.Stacked({{prefix + "self_attn.q_proj.weight", q},
                         {prefix + "self_attn.k_proj.weight", kv},
                         {prefix + "self_attn.v_proj.weight", kv}},
                        h);
    l.out = add.Linear(prefix + "self_attn.o_proj.weight", h, q);
    l.norm2 = add.Vector(prefix + "post_attention_layernorm.weight", h, Init::kOnes);
    l.up = add.Stacked({{prefix + "mlp.gate_proj.weight", s.ffn}, {prefix + "mlp.up_proj.weight", s.ffn}}, h);
    l.down = add.Linear(prefix + "mlp.down_proj.weight", h, s.ffn);
    shape.layers.push_back(l);
  }
  shape.final_norm = add.Vector("model.norm.weight", h, Init::kOnes);
  shape.head = s.tied_head ? shape.embedding : add.Matrix("lm_head.weight", s.vocab, h);
}

struct BiasedNames {
  const char* norm1;
  const char* norm1_bias;
  const char* qkv;
  const char* qkv_bias;
  const char* out;
  const char* out_bias;
  const char* norm2;
  const char* norm2_bias;
  const char* up;
  const char* up_bias;
  const char* down;
  const char* down_bias;
};

constexpr BiasedNames kGptNames = {"ln_1.weight",        "ln_1.bias",        "attn.c_attn.weight", "attn.c_attn.bias",
                                   "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight",        "ln_2.bias",
                                   "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias"};
constexpr BiasedNames kStackNames = {"self_attention.layernorm_qkv.layer_norm_weight",
                                     "self_attention.layernorm_qkv.layer_norm_bias",
                                     "self_attention.layernorm_qkv.weight",
                                     "self_attention.layernorm_qkv.bias",
                                     "self_attention.proj.weight",
                                     "self_attention.proj.bias",
                                     "layernorm_mlp.layer_norm_weight",
                                     "layernorm_mlp.layer_norm_bias",
                                     "layernorm_mlp.fc1_weight",
                                     "layernorm_mlp.fc1_bias",
                                     "layernorm_mlp.fc2_weight",
                                     "layernorm_mlp.fc2_bias"};

LayerParameters BiasedLayer(const RunSpec& s, const std::string& prefix, const BiasedNames& names, ShapeBuilder& add) {
  const int64_t h = s.hidden;
  LayerParameters l;
  l.norm1 = add.Vector(prefix + names.norm1, h, Init::kOnes);
  l.norm1_bias = add.Vector(prefix + names.norm1_bias, h, Init::kZeros);
  l.qkv = add.Linear(prefix + names.qkv, 3 * h, h);
  l.qkv_bias = add.Vector(prefix + names.qkv_bias, 3 * h, Init::kZeros);
  l.out = add.Linear(prefix + names.out, h, h);
  l.out_bias = add.Vector(prefix + names.out_bias, h, Init::kZeros);
  l.norm2 = add.Vector(prefix + names.norm2, h, Init::kOnes);
  l.norm2_bias = add.Vector(prefix + names.norm2_bias, h, Init::kZeros);
  l.up = add.Linear(prefix + names.up, s.ffn, h);
  l.up_bias = add.Vector(prefix + names.up_bias, s.ffn, Init::kZeros);
  l.down = add.Linear(prefix + names.down, h, s.ffn);
  l.down_bias = add.Vector(prefix + names.down_bias, h, Init::kZeros);
  return l;
}

void BuildBiased(const RunSpec& s, ModelShape& shape, ShapeBuilder& add) {
  const bool gpt = s.family == "gpt";
  shape.weights_in_out = gpt;
  if (!gpt) shape.init_std = 0.023;
  // With a head of its own, the names of transformers begin so. Without one, both forms exist: GPT-2's own have no
  // prefix.
  const std::string base = gpt && !s.tied_head ? "transformer." : "";
  if (gpt) {
    shape.embedding = add.Matrix(base + "wte.weight", s.vocab, s.hidden);
    shape.positions = add.Matrix(base + "wpe.weight", s.positions, s.hidden);
  }
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string prefix = (gpt ? base + "h." : "layers.") + std::to_string(i) + ".";
    shape.layers.push_back(BiasedLayer(s, prefix, gpt ? kGptNames : kStackNames, add));
  }
  if (gpt) {
    shape.final_norm = add.Vector(base + "ln_f.weight", s.hidden, Init::kOnes);
    shape.final_norm_bias = add.Vector(base + "ln_f.bias", s.hidden, Init::kZeros);
    shape.head = s.tied_head ? shape.embedding : add.Matrix("lm_head.weight", s.vocab, s.hidden);
  }
}

std::vector<std::vector<int>> GroupsOf(const ModelShape& shape) {
  std::vector<int> layer_of(shape.parameters.size(), -1);
  for (size_t layer = 0; layer < shape.layers.size(); ++layer) {
    const LayerParameters& l = shape.layers[layer];
    for (const int p : {l.norm1, l.norm1_bias, l.qkv, l.qkv_bias, l.out, l.out_bias, l.norm2, l.norm2_bias, l.up,
                        l.up_bias, l.down, l.down_bias}) {
      if (p >= 0) layer_of[static_cast<size_t>(p)] = static_cast<int>(layer);
    }
  }
  std::vector<std::vector<int>> groups;
  for (size_t p = 0; p < layer_of.size(); ++p) {
    const bool joins = p > 0 && layer_of[p] >= 0 && layer_of[p] == layer_of[p - 1];
    if (!joins) groups.emplace_back();
    groups.back().push_back(static_cast<int>(p));
  }
  return groups;
}

}  // namespace

std::vector<int64_t> ShapeOfPart(const Parameter& parameter, const ParameterPart& part) {
  return parameter.init == Init::kNormal ? std::vector{part.rows, parameter.cols} : std::vector{parameter.cols};
}

ModelShape ShapeOf(const RunSpec& s) {
  ModelShape shape;
  ShapeBuilder add(shape);
  if (s.family == "llama") {
    BuildLlama(s, shape, add);
  } else {
    BuildBiased(s, shape, add);
  }
  shape.groups = GroupsOf(shape);
  return shape;
}

}  // namespace ridgeline
