// The only table of RunSpec's members. The sweep parser, the trainer's flags and help, the canonical encoding (and so a
// point's id), the store's columns and the reports follow from its fields. Its settings say how a run is done, not what
// it is. They are read, passed on and documented the same way, but no id, column or axis contains them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

// A field that a trainer's definition adds (RunSpec::own): a key of that map, and the value if none is given.
struct OwnMember {
  FieldValue standard;
};

// The trainer of the contract (RunSpec::trainer): ridgeline-train, or the program that `launch:` names instead.
inline constexpr std::string_view kOurTrainer = "ridgeline";

struct Field {
  // An optional one has no value if a spec does not mention the field. Then no encoding mentions it. Those after it are
  // text in JSON (run/names.h).
  using Member = std::variant<int64_t RunSpec::*, double RunSpec::*, bool RunSpec::*, std::string RunSpec::*, OwnMember,
                              std::optional<bool> RunSpec::*, ModelFamily RunSpec::*, Precision RunSpec::*,
                              OptimizerKind RunSpec::*, ShardMode RunSpec::*, Checkpointing RunSpec::*>;

  // What a field does not change, and what it belongs to. A plain field changes both a run's memory and its loss.
  enum Trait : unsigned {
    kPlain = 0,
    kSparesMemory = 1,   // does not change the memory
    kMemoryByBeing = 2,  // does not change the memory while it stays 0 or stays above 0
    kSparesLoss = 4,     // does not change the loss series
    kOfShape = 8,        // part of a model's shape: naming a model sets it
    kOfHarness = 16,     // tells the harness whom to start or what to know; no flag of ridgeline-train
  };

  // A field's name is the JSON key, the sweep key and the column. A setting's is GROUP.KEY, its place in the JSON and
  // in a sweep: "checkpoint.dir" is {"checkpoint": {"dir": …}}.
  std::string_view name;
  Member member;
  std::string_view help;     // one line: meaning, unit, default
  std::string_view choices;  // "a|b|c" for text with fixed values; empty: any
  double min = 0;            // smallest allowed number
  double max = 0;            // largest allowed number
  unsigned traits = kPlain;  // a sum of Trait values
  // A value, as FieldText writes it, that no encoding mentions: the meaning of points that are older than the field.
  // Otherwise their ids would change.
  std::string_view unsaid = {};

  std::string_view type() const;  // "integer", "number", "true or false", "text"
  // "--batch-size", "--checkpoint-dir". Settings in `measure` use only the key, like the fields there:
  // "--refuse-throttled".
  std::string flag() const;
  bool Has(Trait trait) const { return (traits & trait) != 0; }
  bool is_own() const { return std::holds_alternative<OwnMember>(member); }
};

// All fields, sorted by name. Together with the fields that its trainer adds, they define a point.
std::span<const Field> Fields();

// All settings, sorted by name.
std::span<const Field> Settings();

// A field or a setting; nullptr if the name is unknown.
const Field* FindField(std::string_view name);

// The names that a user may set. They include `model`, which names a preset or a model that another trainer knows.
const std::vector<std::string>& SettableNames();

// The spec with the default in every field and setting that has this trait. If two such specs are equal, the originals
// differ only in these.
RunSpec Without(const RunSpec& spec, Field::Trait trait);

// A spec's value of a field of any type. A trainer's own field has its default if the spec does not mention it.
FieldValue ValueOf(const RunSpec& spec, const Field& field);
// `value` must be of the field's type. Sets nothing and returns false if it is a name that no value has.
bool SetValue(RunSpec& spec, const Field& field, const FieldValue& value);

// Whether the value was not given and cannot be derived: a part of the shape of a model that is only a name
// (run/families.h), or its parameters and FLOPs if nobody gave them. Such a field is shown empty.
bool IsUnknown(const RunSpec& spec, const Field& field);

std::string ValueText(const FieldValue& value);

// The texts that a field may be; empty: any.
std::vector<std::string> ChoicesOf(const Field& field);

// A field's value as text for people and columns: "8", "0.0003", "true", "bf16". Empty if it is unknown, or for a
// trainer's own field that the spec does not mention.
std::string FieldText(const RunSpec& spec, const Field& field);

}  // namespace ridgeline
