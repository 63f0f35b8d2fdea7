// Builds a RunSpec from named values, makes it canonical, and checks, encodes and identifies it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "run/fields.h"

namespace ridgeline {

// What is wrong with a spec, and the field to point at.
struct Problem {
  std::string field;
  std::string message;
  std::vector<std::string_view> with = {};  // other fields whose values cause the problem; names of Fields()
};

// The defaults of a family: stack has those of NVIDIA's fsdp.py (dropout 0.1, Adam at 1e-4, state in the working
// dtype).
RunSpec FamilyDefaults(ModelFamily family);

// Sets one field from a JSON value. Returns the problems (type, range, choice), if any. `model` names a preset and sets
// the shape. Any other name is a model of ModelFamily::kOther if the spec's trainer is not ours.
std::vector<Problem> SetField(RunSpec& spec, std::string_view name, const Json& value);

// The same for a given field, such as a trainer's own.
std::vector<Problem> SetField(RunSpec& spec, const Field& field, const Json& value);

// Builds a spec from named values (a JSON object): the family's defaults, the preset's shape, then every other value.
// Makes it canonical and checks it. Appends problems; the spec is meaningful only if there are none.
RunSpec BuildSpec(const Json& values, std::vector<Problem>& problems);

// Fills in what depends on other fields (kv_heads, head_dim, state_precision, communicator, model). Idempotent. A name
// of ModelFamily::kOther stays as it is, and nothing of such a shape is filled in.
void Canonicalize(RunSpec& spec);

// The problems of a canonical spec: an impossible shape, or a combination that nothing can run.
std::vector<Problem> CheckSpec(const RunSpec& spec);

// Whether linear layers multiply codes with scales.
constexpr bool IsQuantized(Precision precision) {
  return precision == Precision::kFp8 || precision == Precision::kMxfp8 || precision == Precision::kNvfp4;
}
// Whether state_precision must be fp32.
constexpr bool KeepsFp32State(Precision precision) {
  return precision == Precision::kFp32 || precision == Precision::kTf32 || precision == Precision::kFp16;
}

// The number of processes that run the spec, one per rank; 1 if ranks are no processes, or if one stands for all.
int64_t ProcessesOf(const RunSpec& spec);
bool HasSeveralProcesses(const RunSpec& spec);

// Canonical JSON: one line with sorted keys, every field, `version`, and the settings if one is not its default. Equal
// specs give equal text.
std::string EncodeSpec(const RunSpec& spec);
void AppendSpec(const RunSpec& spec, std::string& out);  // the same, appended
// Appends one field, "name":value. Appends nothing and returns false if the value is not encoded or is unknown.
bool AppendField(const RunSpec& spec, const Field& field, std::string& out);

// Appends a trainer's own fields, "own":{…}; nothing if there are none.
void AppendOwn(const RunSpec& spec, std::string& out);

// Whether it consists of letters, digits, '-', '_' and '.', with no '.' first, and at most 64 bytes. Such a file name
// is valid on any system.
bool IsFileName(std::string_view name);
// A file's name, or two with an '@' between them: a trainer and its release, `torchtitan@0.2`. At most 64 bytes.
bool IsTrainerName(std::string_view name);
inline constexpr std::string_view kTrainerNameRule =
    "letters, digits, '-', '_' and '.', one '@' before a release, and at most 64 of them";
// The part of `trainer` after `name`, if it is a release of it: "0.2.2" for torchtitan@0.2.2 after torchtitan, "2"
// after torchtitan@0.2. Empty if it is none.
std::string_view ReleaseAfter(std::string_view name, std::string_view trainer);
// Whether it consists of lower-case letters, digits and '_', with a letter first, like all names of fields.
bool IsFieldName(std::string_view name);

// The settings of `launch:` among a spec's own values.
std::map<std::string, FieldValue> SettingsAlone(std::map<std::string, FieldValue> own);

// Whether a key of RunSpec::own is a setting of a sweep's `launch:` that its points differ by, and no field of a
// trainer: "environment.NCCL_ALGO", "slurm.container".
bool IsSettingName(std::string_view name);

// Throws Error(kInvalidInput), which names `source`, for a wrong version, an unknown key, or any problem.
RunSpec DecodeSpec(const Json& document, const std::string& source);

// The encoding that defines a point: the canonical JSON without settings.
std::string EncodePoint(const RunSpec& spec);

// The id of a point: 32 hexadecimal digits of the hash of EncodePoint.
std::string PointId(const RunSpec& spec);

}  // namespace ridgeline
