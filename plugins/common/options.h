// A launcher's settings as written under a sweep's `launch:`. Each is read with its type, unit and range. A refusal
// always names the setting, its value, what it must be and what to write instead.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/failure.h"
#include "ridgeline/amount.h"

namespace ridgeline::plugin {

// How amounts of one kind are written.
struct Notation {
  const char* form;  // the words after "must be"
  const char* hint;
  std::optional<double> (*parse)(std::string_view text);
};

class Option {
 public:
  // `name` is the path below `launch:`, "slurm: memory".
  Option(std::string name, Json value) : name_(std::move(name)), value_(std::move(value)) {}

  const std::string& name() const { return name_; }
  const Json& value() const { return value_; }
  // Returns the value as it was written if it is a text or a number; else empty.
  std::string Words() const;

  // Each throws Failure, through Refuse, for any other value.
  std::string Text() const;  // one line of text, or a whole number
  bool Flag() const;
  const Json& Mapping() const;
  int64_t Count(int64_t least, int64_t most) const;
  // The bounds are written like the value: "1h", "512MiB".
  int64_t Seconds(const char* least, const char* most) const;  // "90s", "1.5h", "1-12:00:00", or a number of seconds
  int64_t Bytes(const char* least, const char* most) const;    // "64GB", "512 MiB", or a number of bytes
  double Amount(const Notation& notation, const char* least, const char* most) const;

  // Throws "launch: NAME is VALUE, and must be …".
  [[noreturn]] void Refuse(const std::string& must, const std::string& hint = {}) const;

 private:
  std::string name_;
  Json value_;
};

// Reads a number directly under `launch:`; 0 if it is not given.
int64_t CountUnderLaunch(const Json& config, const char* name);

// A launcher's own settings, by name.
template <typename Options>
using Settings = std::map<std::string, std::function<void(const Option& option, Options& to)>>;

// A setting that is stored in one member. `read` is a member of Option, or takes an Option.
template <typename Member, typename Read>
auto Into(Member member, Read read) {
  return [=](const Option& option, auto& to) { to.*member = std::invoke(read, option); };
}

// For a setting that a job's `config` has but that only the session may have.
[[noreturn]] void RefuseOfTheSession(const std::string& name);

[[noreturn]] void RefuseUnknown(const std::string& launcher, const std::string& name,
                                const std::vector<std::string>& known, const std::string& elsewhere);

// What is wrong with settings, all of it.
class Refusals {
 public:
  // Keeps the Failure that `read` throws about the user's input.
  template <typename Read>
  void Try(const Read& read) {
    try {
      read();
    } catch (const Failure& e) {
      if (e.kind() != Failure::Kind::kInvalidInput) throw;
      failures_.push_back(e);
    }
  }
  // Throws the one Failure, or, for several, one whose message has a line for each.
  void ThrowIfAny() const;

 private:
  std::vector<Failure> failures_;
};

// Reads the mapping named after the launcher. `elsewhere` says where other settings belong. Throws one Failure that
// has everything that is wrong, a line for each setting.
template <typename Options>
void ReadSettings(const Json& config, const std::string& launcher, const Settings<Options>& settings,
                  const std::string& elsewhere, Options& to) {
  const auto own = config.find(launcher);
  if (own == config.end()) return;
  if (!own->is_object()) {
    throw Failure(Failure::Kind::kInvalidInput, "launch: " + launcher + ": is a mapping, not " + own->dump());
  }
  Refusals refusals;
  for (const auto& own_setting : own->items()) {
    refusals.Try([&] {
      const std::string& name = own_setting.key();
      const auto setting = settings.find(name);
      if (setting == settings.end()) {
        std::vector<std::string> known;
        for (const auto& entry : settings) known.push_back(entry.first);
        RefuseUnknown(launcher, name, known, elsewhere);
      }
      setting->second(Option(launcher + ": " + name, own_setting.value()), to);
    });
  }
  refusals.ThrowIfAny();
}

}  // namespace ridgeline::plugin
