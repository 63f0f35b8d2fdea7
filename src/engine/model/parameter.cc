#include "engine/model/parameter.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "run/names.h"

namespace ridgeline::engine {
namespace {

// Adds parameters in the order in which they are stored.
class ShapeBuilder {
 public:
  ShapeBuilder(const RunSpec& spec, ModelShape& shape) : spec_(spec), shape_(shape) {}

  // The parameters that follow belong to a new layer, until EndLayers.
  void BeginLayer() {
    layer_ = static_cast<int64_t>(shape_.layers.size());
    shape_.layers.emplace_back();
  }
  void EndLayers() { layer_ = -1; }

  // An empty name of a bias: there is none.
  NormParameters Norm(std::string weight, std::string bias = {}) {
    NormParameters norm;
    norm.weight = Vector(std::move(weight), spec_.hidden, Init::kOnes, Role::kReplicated);
    if (!bias.empty()) norm.bias = Vector(std::move(bias), spec_.hidden, Init::kZeros, Role::kReplicated);
    return norm;
  }

  struct Names {
    std::vector<std::pair<std::string, int64_t>> weights;  // with their outputs; stacked if there are several
    std::string bias = {};
  };
  void Attention(NormParameters norm, const Names& qkv, const Names& out) {
    SublayerParameters& added = Sublayer(SublayerKind::kAttention, norm);
    added.in = Linear(qkv, spec_.hidden, Role::kColumnParallel);
    // A key bias adds the same number to every score of a row, and softmax does not see that. Without rotation its
    // gradient is zero. To Adam, which divides by the gradient's size, its rounding errors would be as large as any
    // gradient.
    if (!shape_.rotary) added.in.idle_bias = {spec_.heads * spec_.head_dim, spec_.kv_heads * spec_.head_dim};
    added.out = Linear(out, spec_.heads * spec_.head_dim, Role::kRowParallel);
  }
  void Mlp(NormParameters norm, const Names& up, const Names& down) {
    SublayerParameters& added = Sublayer(SublayerKind::kMlp, norm);
    added.in = Linear(up, spec_.hidden, Role::kColumnParallel);
    added.out = Linear(down, spec_.ffn, Role::kRowParallel);
  }

  int Matrix(std::string name, int64_t rows, Role role) {
    return Add({{std::move(name), 0, rows}}, rows, spec_.hidden, Init::kNormal, role);
  }

 private:
  SublayerParameters& Sublayer(SublayerKind kind, NormParameters norm) {
    SublayerParameters& added = shape_.layers.back().emplace_back();
    added.kind = kind;
    added.number = shape_.sublayers++;
    added.norm = norm;
    return added;
  }

  // The weight is (in, out) if the family stores it so.
  LinearParameters Linear(const Names& names, int64_t inputs, Role role) {
    LinearParameters linear;
    linear.inputs = inputs;
    linear.number = shape_.linears++;
    std::vector<ParameterPart> parts;
    for (const auto& [name, outputs] : names.weights) {
      parts.push_back({name, linear.outputs, outputs});
      linear.outputs += outputs;
    }
    if (shape_.weights_in_out) {
      assert(parts.size() == 1);
      parts.front().rows = inputs;
      linear.weight = Add(std::move(parts), inputs, linear.outputs, Init::kNormal, role);
    } else {
      linear.weight = Add(std::move(parts), linear.outputs, inputs, Init::kNormal, role);
    }
    // Every rank would add a row-parallel layer's bias to the sum.
    const Role of_bias = role == Role::kColumnParallel ? role : Role::kReplicated;
    if (!names.bias.empty()) linear.bias = Vector(names.bias, linear.outputs, Init::kZeros, of_bias);
    return linear;
  }

  int Vector(std::string name, int64_t size, Init init, Role role) {
    return Add({{std::move(name), 0, 1}}, 1, size, init, role);
  }

  int Add(std::vector<ParameterPart> parts, int64_t rows, int64_t cols, Init init, Role role) {
    shape_.parameters.push_back({std::move(parts), rows, cols, init, role, layer_});
    return static_cast<int>(shape_.parameters.size()) - 1;
  }

  const RunSpec& spec_;
  ModelShape& shape_;
  int64_t layer_ = -1;
};

void BuildLlama(const RunSpec& s, ModelShape& shape) {
  ShapeBuilder add(s, shape);
  const int64_t q = s.heads * s.head_dim;
  const int64_t kv = s.kv_heads * s.head_dim;
  shape.rotary = true;
  shape.activation = MlpActivation::kSwiGlu;
  shape.embedding = add.Matrix("model.embed_tokens.weight", s.vocab, Role::kVocabulary);
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const std::string attention = layer + "self_attn.";
    const std::string mlp = layer + "mlp.";
    add.BeginLayer();
    add.Attention(
        add.Norm(layer + "input_layernorm.weight"),
        {{{attention + "q_proj.weight", q}, {attention + "k_proj.weight", kv}, {attention + "v_proj.weight", kv}}},
        {{{attention + "o_proj.weight", s.hidden}}});
    add.Mlp(add.Norm(layer + "post_attention_layernorm.weight"),
            {{{mlp + "gate_proj.weight", s.ffn}, {mlp + "up_proj.weight", s.ffn}}},
            {{{mlp + "down_proj.weight", s.hidden}}});
  }
  add.EndLayers();
  shape.final_norm = add.Norm("model.norm.weight");
  shape.head = s.tied_head ? shape.embedding : add.Matrix("lm_head.weight", s.vocab, Role::kVocabulary);
}

void BuildGpt(const RunSpec& s, ModelShape& shape) {
  ShapeBuilder add(s, shape);
  shape.weights_in_out = true;
  // With a head of its own, the names of transformers begin so. Without one, both forms exist: GPT-2's own have no
  // prefix.
  const std::string base = s.tied_head ? "" : "transformer.";
  shape.embedding = add.Matrix(base + "wte.weight", s.vocab, Role::kVocabulary);
  shape.positions = add.Matrix(base + "wpe.weight", s.positions, Role::kReplicated);
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string layer = base + "h." + std::to_string(i) + ".";
    add.BeginLayer();
    add.Attention(add.Norm(layer + "ln_1.weight", layer + "ln_1.bias"),
                  {{{layer + "attn.c_attn.weight", 3 * s.hidden}}, layer + "attn.c_attn.bias"},
                  {{{layer + "attn.c_proj.weight", s.hidden}}, layer + "attn.c_proj.bias"});
    add.Mlp(add.Norm(layer + "ln_2.weight", layer + "ln_2.bias"),
            {{{layer + "mlp.c_fc.weight", s.ffn}}, layer + "mlp.c_fc.bias"},
            {{{layer + "mlp.c_proj.weight", s.hidden}}, layer + "mlp.c_proj.bias"});
  }
  add.EndLayers();
  shape.final_norm = add.Norm(base + "ln_f.weight", base + "ln_f.bias");
  shape.head = s.tied_head ? shape.embedding : add.Matrix("lm_head.weight", s.vocab, Role::kVocabulary);
}

void BuildStack(const RunSpec& s, ModelShape& shape) {
  ShapeBuilder add(s, shape);
  shape.init_std = 0.023;
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    const std::string qkv = layer + "self_attention.layernorm_qkv.";
    const std::string mlp = layer + "layernorm_mlp.";
    add.BeginLayer();
    add.Attention(add.Norm(qkv + "layer_norm_weight", qkv + "layer_norm_bias"),
                  {{{qkv + "weight", 3 * s.hidden}}, qkv + "bias"},
                  {{{layer + "self_attention.proj.weight", s.hidden}}, layer + "self_attention.proj.bias"});
    add.Mlp(add.Norm(mlp + "layer_norm_weight", mlp + "layer_norm_bias"),
            {{{mlp + "fc1_weight", s.ffn}}, mlp + "fc1_bias"}, {{{mlp + "fc2_weight", s.hidden}}, mlp + "fc2_bias"});
  }
}

// A row for each family of ours (run/families.h).
struct FamilyShape {
  ModelFamily family;
  void (*build)(const RunSpec& spec, ModelShape& shape);
};
constexpr FamilyShape kFamilyShapes[] = {
    {ModelFamily::kLlama, BuildLlama}, {ModelFamily::kGpt, BuildGpt}, {ModelFamily::kStack, BuildStack}};

std::vector<std::vector<int>> GroupsOf(const std::vector<Parameter>& parameters) {
  std::vector<std::vector<int>> groups;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const bool joins = p > 0 && parameters[p].layer >= 0 && parameters[p].layer == parameters[p - 1].layer;
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
  const auto* family = std::ranges::find(kFamilyShapes, s.family, &FamilyShape::family);
  if (family == std::end(kFamilyShapes))
    throw Error(ErrorKind::kInternal, fmt::format("no shape of family {}", s.family));
  ModelShape shape;
  family->build(s, shape);
  shape.groups = GroupsOf(shape.parameters);
  return shape;
}

}  // namespace ridgeline::engine
