// The one table of RunSpec's members. Its fields feed the sweep parser, the trainer's flags and help, the canonical
// encoding (and so a point's id), the store's columns and the reports. Its settings say how a run goes about it, not
// what it is: they are read, passed on and documented the same way, but no id, column or axis is made of them.
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

// A field that a trainer's definition adds (RunSpec::own): a key of that map, and the value where none is given.
struct OwnMember {
  FieldValue standard;
};

// The trainer of the contract (RunSpec::trainer): ridgeline-train, or whichever program `launch:` names in its place.
inline constexpr std::string_view kOurTrainer = "ridgeline";

struct Field {
  // The last is false where a spec says nothing of it, and then no encoding mentions it.
  using Member = std::variant<int64_t RunSpec::*, double RunSpec::*, bool RunSpec::*, std::string RunSpec::*, OwnMember,
                              std::optional<bool> RunSpec::*>;

  // What a field leaves as it is, and what it belongs to. A plain one changes both the memory a run takes and what it
  // learns.
  enum Trait : unsigned {
    kPlain = 0,
    kSparesMemory = 1,   // the same memory, whatever it is
    kMemoryByBeing = 2,  // the same memory, as long as it stays 0 or stays above
    kSparesLoss = 4,     // the same loss series, whatever it is
    kOfShape = 8,        // part of a model's shape: naming a model sets it
    kOfHarness = 16,     // says whom the harness starts, or what it is to know: no flag of ridgeline-train
  };

  // A field's is the JSON key, the sweep key and the column. A setting's is GROUP.KEY, its place in the JSON and in a
  // sweep: "checkpoint.dir" is {"checkpoint": {"dir": …}}.
  std::string_view name;
  Member member;
  std::string_view help;     // one line: meaning, unit, default
  std::string_view choices;  // "a|b|c" for text with fixed values; empty: any
  double min = 0;            // smallest allowed number
  double max = 0;            // largest allowed number
  unsigned traits = kPlain;  // of Trait, added up
  // A value that no encoding mentions, as FieldText has it: what points meant that are older than the field, whose ids
  // would change otherwise.
  std::string_view unsaid = {};

  std::string_view type() const;  // "integer", "number", "true or false", "text"
  // "--batch-size", "--checkpoint-dir". Of the settings in `measure`, as of the fields there, the key alone:
  // "--refuse-throttled".
  std::string flag() const;
  bool Has(Trait trait) const { return (traits & trait) != 0; }
  bool is_own() const { return std::holds_alternative<OwnMember>(member); }
};

// All fields, sorted by name: together they are a point, with what its trainer adds of its own.
std::span<const Field> Fields();

// All settings, sorted by name.
std::span<const Field> Settings();

// A field or a setting; nullptr where there is none.
const Field* FindField(std::string_view name);

// The names a person may set (`model` included: there it names a preset, or whatever another trainer knows).
const std::vector<std::string>& SettableNames();

// The spec with every field and setting that has this trait put to its default: specs that are equal then differ in
// nothing that matters.
RunSpec Without(const RunSpec& spec, Field::Trait trait);

// What a spec has in a field, of whichever type. A trainer's own is its standard value where the spec has none.
FieldValue ValueOf(const RunSpec& spec, const Field& field);
// `value` must be of the field's type.
void SetValue(RunSpec& spec, const Field& field, const FieldValue& value);

// Whether nobody has said it, and it does not follow from what was said: a part of the shape of a model that is only a
// name (run/families.h), or its parameters and FLOPs where no one gave them. Such a field shows nothing.
bool IsUnknown(const RunSpec& spec, const Field& field);

std::string ValueText(const FieldValue& value);

// A field's value as text for people and columns: "8", "0.0003", "true", "bf16"; empty where it is unknown, and of a
// trainer's own where the spec has none of it.
std::string FieldText(const RunSpec& spec, const Field& field);

}  // namespace ridgeline
