// RunSpec: built from named values, made canonical, checked, encoded, identified.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "run/fields.h"

namespace ridgeline {

// What is wrong with a spec, and which field to point at.
struct Problem {
  std::string field;
  std::string message;
  std::vector<std::string_view> with = {};  // the other fields whose values make it wrong; names of Fields()
};

// The defaults of a family: stack has NVIDIA's fsdp.py ones (dropout 0.1, Adam at 1e-4, state in the working dtype).
RunSpec FamilyDefaults(std::string_view family);

// Sets one field from a JSON value. Returns what is wrong (type, range, choice), or nothing. `model` names a preset and
// sets the shape; any other name is a model of kAnyFamily where the spec's trainer is not ours.
std::vector<Problem> SetField(RunSpec& spec, std::string_view name, const Json& value);

// The same of a field in hand, such as a trainer's own.
std::vector<Problem> SetField(RunSpec& spec, const Field& field, const Json& value);

// A spec from named values (a JSON object): the family's defaults, the preset's shape, then every other value; made
// canonical and checked. Problems are appended; the spec is meaningful only where none were.
RunSpec BuildSpec(const Json& values, std::vector<Problem>& problems);

// Fills in what depends on other fields (kv_heads, head_dim, state_precision, communicator, model). Idempotent. A name
// of kAnyFamily stays as it is, and nothing of such a shape is filled in.
void Canonicalize(RunSpec& spec);

// What a canonical spec can't be: an impossible shape, a combination nothing can run.
std::vector<Problem> CheckSpec(const RunSpec& spec);

// The processes that run the spec, each a rank; 1 where ranks are none, or one stands for all.
int64_t ProcessesOf(const RunSpec& spec);
bool HasSeveralProcesses(const RunSpec& spec);

// "full/4" -> {kind "full", every 4}; every is 1 for full, 0 for the others. False where it is none of the policies.
bool ParseCheckpointing(std::string_view text, std::string& kind, int64_t& every);

// Canonical JSON: one line, sorted keys, every field, `version`, and the settings where one is not its default. Equal
// specs give equal text.
std::string EncodeSpec(const RunSpec& spec);
void AppendSpec(const RunSpec& spec, std::string& out);  // the same, appended
// One field of it, "name":value; nothing, and false, where the value goes unsaid or is unknown.
bool AppendField(const RunSpec& spec, const Field& field, std::string& out);

// Of a trainer's own fields, "own":{…}; nothing where there are none.
void AppendOwn(const RunSpec& spec, std::string& out);

// Letters, digits, '-', '_' and '.', and not this first; at most 64 bytes. A file may be called so on any system.
bool IsFileName(std::string_view name);
// A file's name, or two with an '@' between them: a trainer and its release, `torchtitan@0.2`. At most 64 bytes.
bool IsTrainerName(std::string_view name);
inline constexpr std::string_view kTrainerNameRule =
    "letters, digits, '-', '_' and '.', one '@' before a release, and at most 64 of them";
// What of `trainer` comes after `name` where it is a release of it: "0.2.2" of torchtitan@0.2.2 after torchtitan, "2"
// after torchtitan@0.2. Empty where it is none.
std::string_view ReleaseAfter(std::string_view name, std::string_view trainer);
// Small letters, digits and '_', a letter first: as all fields are called.
bool IsFieldName(std::string_view name);

// Throws Error(kInvalidInput) naming `source`, for a wrong version, an unknown key, or any problem.
RunSpec DecodeSpec(const Json& document, const std::string& source);

// What a point is: the canonical JSON without settings.
std::string EncodePoint(const RunSpec& spec);

// The id of a point: 32 hexadecimal digits of the hash of EncodePoint.
std::string PointId(const RunSpec& spec);

}  // namespace ridgeline
