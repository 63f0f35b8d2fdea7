// The row of an op: everything that other code must know of the op besides its kernels. Code that counts, prices or
// draws calls reads this row, and never asks which op it is. An op without a row does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ridgeline::engine {

class OpCall;

// What decides how long a call takes. Each switch over it names every kind, so that the compiler asks for a new one.
enum class OpKind : uint8_t {
  kPass,               // moves numbers through memory; its arithmetic does not count
  kProduct,            // multiplies matrices
  kForwardAttention,   // multiplies matrices that never reach memory
  kBackwardAttention,  // the same
  kTakeOff,            // starts a collective, which is in flight until its landing
  kAtOnce,             // a collective that blocks
  kLanding             // waits for a collective that was started
};

// Whether calls of the kind state FLOPs, or bytes to other ranks. Other kinds state none.
constexpr bool Multiplies(OpKind kind) {
  return kind == OpKind::kProduct || kind == OpKind::kForwardAttention || kind == OpKind::kBackwardAttention;
}
constexpr bool MovesBetweenRanks(OpKind kind) { return kind == OpKind::kTakeOff || kind == OpKind::kAtOnce; }

enum class Collective : uint8_t { kNone, kAllReduce, kAllGather, kReduceScatter };

// Where the budget of a step (step/budget.h) has the calls of an op: in a part of it, or beside it for a reason.
struct BudgetPlace {
  std::string_view part;
  std::string_view reason;
  std::string_view reason_of_more = "";  // replaces `reason` for a call that moves more than its operands
};
constexpr BudgetPlace PartOfBudget(std::string_view part) { return {part, ""}; }
constexpr BudgetPlace BesideBudget(std::string_view reason, std::string_view reason_of_more = "") {
  return {"", reason, reason_of_more};
}

// The passes between products, which several headers of ops have.
inline constexpr BudgetPlace kBetweenProducts = PartOfBudget("norms, residual, RoPE, activation");

// The attributes that decide how long a call takes, as a number and as its name in the file of a device: " nt". Without
// functions, calls of the op differ only in their operands. No two numbers share a name.
struct CallVariants {
  uint32_t (*of)(const OpCall&) = nullptr;
  std::string (*name)(uint32_t variant) = nullptr;
};

// The dimensions of a call that decide how long it takes: m, n, k of a product; batch x heads, sequence and size of a
// head of attention.
using DimsOfCall = std::array<int64_t, 3> (*)(const OpCall&);

// The identity and the row of an op. Devices look kernels up by its address.
class OpDef {
 public:
  static constexpr OpDef Pass(const char* name, const BudgetPlace& budget, const CallVariants& variants = {}) {
    return {name, OpKind::kPass, Collective::kNone, budget, nullptr, variants};
  }
  static constexpr OpDef Product(const char* name, const BudgetPlace& budget, DimsOfCall dims,
                                 const CallVariants& variants) {
    return {name, OpKind::kProduct, Collective::kNone, budget, dims, variants};
  }
  static constexpr OpDef ForwardAttention(const char* name, const BudgetPlace& budget, DimsOfCall dims) {
    return {name, OpKind::kForwardAttention, Collective::kNone, budget, dims, {}};
  }
  static constexpr OpDef BackwardAttention(const char* name, const BudgetPlace& budget, DimsOfCall dims) {
    return {name, OpKind::kBackwardAttention, Collective::kNone, budget, dims, {}};
  }
  static constexpr OpDef TakeOff(const char* name, Collective collective) {
    return {name, OpKind::kTakeOff, collective, BesideBudget(kBetweenRanks), nullptr, {}};
  }
  static constexpr OpDef AtOnce(const char* name, Collective collective) {
    return {name, OpKind::kAtOnce, collective, BesideBudget(kBetweenRanks), nullptr, {}};
  }
  static constexpr OpDef Landing(const char* name) {
    return {name, OpKind::kLanding, Collective::kNone, BesideBudget(kBetweenRanks), nullptr, {}};
  }

  const char* name;
  OpKind kind;
  Collective collective;
  BudgetPlace budget;
  DimsOfCall dims;  // nullptr unless the kind multiplies
  CallVariants variants;
  const void* attrs_type = nullptr;  // identifies the type of the attributes

 private:
  static constexpr std::string_view kBetweenRanks = "between ranks";
  constexpr OpDef(const char* name, OpKind kind, Collective collective, const BudgetPlace& budget, DimsOfCall dims,
                  const CallVariants& variants)
      : name(name), kind(kind), collective(collective), budget(budget), dims(dims), variants(variants) {}
};

struct NoAttrs {};

template <typename AttrsT>
inline constexpr char kAttrsType = 0;  // its address identifies the type

// An op, and the contents of its calls. `OperandsT` names its tensors once for every device, in structs of Tensors:
// `reads`, and, if it has any, `writes` and `scratch`. Contents of `scratch` mean nothing before and after the call. A
// tensor changed in place is in both `reads` and `writes`. `AttrsT` is whatever else its kernels need to know.
template <typename OperandsT, typename AttrsT = NoAttrs>
struct Op : OpDef {
  constexpr explicit Op(const OpDef& row) : OpDef(row) { attrs_type = &kAttrsType<AttrsT>; }
};

}  // namespace ridgeline::engine
