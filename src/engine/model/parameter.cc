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

// Matrices one after another along the outputs of a linear layer, or the rows of a table, each of `units` equal parts
// (heads, for example) that ranks do not cut.
struct Section {
  int64_t size = 0;
  int64_t units = 0;
};

// Adds parameters in the order in which they are stored.
class ShapeBuilder {
 public:
  // `ranks` share the model's products, and `place` is this one's among them.
  ShapeBuilder(const RunSpec& spec, ModelShape& shape, int64_t ranks, int64_t place)
      : spec_(spec), shape_(shape), ranks_(ranks), place_(place) {}

  // The parameters that follow belong to a new layer, until EndLayers.
  void BeginLayer() {
    layer_ = static_cast<int64_t>(shape_.layers.size());
    shape_.layers.emplace_back();
  }
  void EndLayers() { layer_ = -1; }

  // An empty name of a bias: there is none.
  NormParameters Norm(std::string weight, std::string bias = {}) {
    NormParameters norm;
    norm.weight = Vector(std::move(weight), spec_.hidden, Init::kOnes, Role::kNorm);
    if (!bias.empty()) norm.bias = Vector(std::move(bias), spec_.hidden, Init::kZeros, Role::kNorm);
    return norm;
  }

  struct Names {
    std::vector<std::pair<std::string, int64_t>> weights;  // with their outputs; stacked if there are several
    std::string bias = {};
  };
  void Attention(NormParameters norm, const Names& qkv, const Names& out) {
    SublayerParameters& added = Sublayer(SublayerKind::kAttention, norm);
    const Section queries = {spec_.heads * spec_.head_dim, spec_.heads};
    const Section keys = {spec_.kv_heads * spec_.head_dim, spec_.kv_heads};
    added.in = ColumnParallel(qkv, {queries, keys, keys});
    // A key bias adds the same number to every score of a row, and softmax does not see that. Without rotation its
    // gradient is zero. To Adam, which divides by the gradient's size, its rounding errors would be as large as any
    // gradient.
    if (!shape_.rotary) added.in.idle_bias = {SliceOf(queries).count, SliceOf(keys).count};
    added.out = RowParallel(out, queries);
  }
  void Mlp(NormParameters norm, const Names& up, const Names& down) {
    SublayerParameters& added = Sublayer(SublayerKind::kMlp, norm);
    const Section units = {spec_.ffn, spec_.ffn};
    added.in = ColumnParallel(up, std::vector<Section>(shape_.activation == MlpActivation::kSwiGlu ? 2 : 1, units));
    added.out = RowParallel(down, units);
  }

  // Every rank has all of it.
  int Matrix(std::string name, int64_t rows) {
    return Add({{std::move(name), 0, rows}}, rows, spec_.hidden, Init::kNormal, Role::kReplicated);
  }
  int Vocabulary(std::string name) {
    const int added =
        Add({{std::move(name), 0, spec_.vocab}}, spec_.vocab, spec_.hidden, Init::kNormal, Role::kVocabulary);
    SetShare(added, false, {{spec_.vocab, spec_.vocab}});
    return added;
  }

 private:
  SublayerParameters& Sublayer(SublayerKind kind, NormParameters norm) {
    SublayerParameters& added = shape_.layers.back().emplace_back();
    added.kind = kind;
    added.number = shape_.sublayers++;
    added.norm = norm;
    return added;
  }

  // Returns what this rank has of a section. If it has fewer units than there are ranks, several ranks have the same.
  Slice SliceOf(const Section& section) const {
    const int64_t parts = std::min(section.units, ranks_);
    const int64_t size = section.size / parts;
    return {place_ * parts / ranks_ * size, size};
  }

  // Gives this rank its rows, or columns, of each section.
  void SetShare(int parameter, bool of_columns, const std::vector<Section>& sections) {
    Parameter& p = shape_.parameters[static_cast<size_t>(parameter)];
    std::vector<Slice> slices;
    int64_t begin = 0;  // of the section in the whole
    int64_t end = 0;    // of the rank's
    Slice copied;
    int64_t copies = 1;
    for (const Section& section : sections) {
      const auto [first, count] = SliceOf(section);
      slices.push_back({begin + first, count});
      begin += section.size;
      if (section.units < ranks_) {  // such sections follow each other
        if (copied.count == 0) copied.first = end;
        copied.count += count;
        copies = ranks_ / section.units;
      }
      end += count;
    }
    p.share = Share(p.rows, p.cols, of_columns, std::move(slices));
    assert(copies == 1 || !of_columns);
    p.share.copied = copied;
    p.share.copies = copies;
  }

  LinearParameters ColumnParallel(const Names& names, const std::vector<Section>& outputs) {
    LinearParameters linear = Linear(names, spec_.hidden, Role::kColumnParallel);
    linear.outputs = 0;
    for (const Section& section : outputs) linear.outputs += SliceOf(section).count;
    SetShare(linear.weight, shape_.weights_in_out, outputs);
    if (linear.bias >= 0) SetShare(linear.bias, true, outputs);
    return linear;
  }
  LinearParameters RowParallel(const Names& names, const Section& inputs) {
    LinearParameters linear = Linear(names, inputs.size, Role::kRowParallel);
    linear.inputs = SliceOf(inputs).count;
    SetShare(linear.weight, !shape_.weights_in_out, {inputs});
    return linear;
  }

  // Adds the whole. The weight is (in, out) if the family stores it so.
  LinearParameters Linear(const Names& names, int64_t inputs, Role role) {
    LinearParameters linear;
    linear.inputs = inputs;
    linear.role = role;
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
    // One rank adds a row-parallel layer's bias to the sum, and all of them know it.
    const Role of_bias = role == Role::kColumnParallel ? role : Role::kReplicated;
    if (!names.bias.empty()) linear.bias = Vector(names.bias, linear.outputs, Init::kZeros, of_bias);
    return linear;
  }

  int Vector(std::string name, int64_t size, Init init, Role role) {
    return Add({{std::move(name), 0, 1}}, 1, size, init, role);
  }

  int Add(std::vector<ParameterPart> parts, int64_t rows, int64_t cols, Init init, Role role) {
    shape_.parameters.push_back({std::move(parts), rows, cols, init, role, layer_, Share(rows, cols)});
    return static_cast<int>(shape_.parameters.size()) - 1;
  }

  const RunSpec& spec_;
  ModelShape& shape_;
  const int64_t ranks_;
  const int64_t place_;
  int64_t layer_ = -1;
};

void BuildLlama(const RunSpec& s, ModelShape& shape, ShapeBuilder& add) {
  const int64_t q = s.heads * s.head_dim;
  const int64_t kv = s.kv_heads * s.head_dim;
  shape.rotary = true;
  shape.activation = MlpActivation::kSwiGlu;
  shape.embedding = add.Vocabulary("model.embed_tokens.weight");
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
  shape.head = s.tied_head ? shape.embedding : add.Vocabulary("lm_head.weight");
}

void BuildGpt(const RunSpec& s, ModelShape& shape, ShapeBuilder& add) {
  shape.weights_in_out = true;
  // With a head of its own, the names of transformers begin so. Without one, both forms exist: GPT-2's own have no
  // prefix.
  const std::string base = s.tied_head ? "" : "transformer.";
  shape.embedding = add.Vocabulary(base + "wte.weight");
  shape.positions = add.Matrix(base + "wpe.weight", s.positions);
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
  shape.head = s.tied_head ? shape.embedding : add.Vocabulary("lm_head.weight");
}

void BuildStack(const RunSpec& s, ModelShape& shape, ShapeBuilder& add) {
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
  void (*build)(const RunSpec& spec, ModelShape& shape, ShapeBuilder& add);
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

Share::Share(int64_t rows, int64_t cols, bool of_columns, std::vector<Slice> slices)
    : whole_rows_(rows), whole_cols_(cols), of_columns_(of_columns), slices_(std::move(slices)) {
  int64_t count = 0;
  for (const Slice& slice : slices_) count += slice.count;
  rows_ = of_columns ? rows : count;
  cols_ = of_columns ? count : cols;
  if (of_columns) return;
  for (Slice& slice : slices_) slice = {slice.first * cols, slice.count * cols};
}

int64_t Share::Before(int64_t whole) const {
  int64_t before = of_columns_ ? whole / whole_cols_ * cols_ : 0;
  if (of_columns_) whole %= whole_cols_;
  for (const Slice& slice : slices_) before += std::clamp<int64_t>(whole - slice.first, 0, slice.count);
  return before;
}

int64_t Share::InWhole(int64_t element) const {
  const int64_t row = of_columns_ ? element / cols_ * whole_cols_ : 0;
  if (of_columns_) element %= cols_;
  for (const Slice& slice : slices_) {
    if (element < slice.count) return row + slice.first + element;
    element -= slice.count;
  }
  return whole_rows_ * whole_cols_;
}

int64_t Share::RunAt(int64_t element) const {
  if (is_whole()) return elements() - element;
  if (of_columns_) element %= cols_;
  for (const Slice& slice : slices_) {
    if (element < slice.count) return slice.count - element;
    element -= slice.count;
  }
  return 0;
}

ModelShape ShapeOf(const RunSpec& s, int64_t rank) {
  const auto* family = std::ranges::find(kFamilyShapes, s.family, &FamilyShape::family);
  if (family == std::end(kFamilyShapes))
    throw Error(ErrorKind::kInternal, fmt::format("no shape of family {}", s.family));
  ModelShape shape;
  ShapeBuilder add(s, shape, s.tensor_parallel, MeshOf(s).PlaceOf(rank, MeshAxis::kTensor));
  family->build(s, shape, add);
  shape.groups = GroupsOf(shape.parameters);
  return shape;
}

}  // namespace ridgeline::engine
