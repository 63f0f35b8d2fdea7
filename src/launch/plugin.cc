// The plugin behind Launcher. Every reply is outside input and is checked before use.
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/folders.h"
#include "base/text.h"
#include "launch/launcher.h"
#include "ridgeline/json_fault.h"
#include "ridgeline/launcher.h"
#include "ridgeline/limits.h"
#include "run/job.h"
#include "run/result.h"
#include "trainers/definition.h"

namespace ridgeline::launch {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ridgeline-launcher-";
constexpr std::string_view kSuffix = ".so";
constexpr const char* kEntry = "ridgeline_launcher";
constexpr int64_t kNsPerS = 1'000'000'000;
constexpr int64_t kNsPerMs = 1'000'000;

bool IsPluginName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

ErrorKind KindFromName(const std::string& name) {
  if (name == "usage") return ErrorKind::kUsage;
  if (name == "invalid_input") return ErrorKind::kInvalidInput;
  return ErrorKind::kInfrastructure;
}

Error ErrorFromJson(const Json& document, const std::string& launcher) {
  const auto text = [&](const char* key) { return document.value(key, std::string()); };
  return Error(KindFromName(text("kind")), fmt::format("launcher {}: {}", launcher, text("message")), text("hint"));
}

struct CloseLibrary {
  void operator()(void* handle) const { ::dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

// Reads a reply, and says of which call it is if it is wrong.
template <typename Read>
auto CheckedReply(const std::string& launcher, const char* call, Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("launcher {}: its reply to {} is not what {} replies: {}",
                                                        launcher, call, call, JsonFault(e)));
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("launcher {}: its reply to {}: {}", launcher, call, e.message()), e.hint());
  }
}

template <typename Function>
Json ExchangeWith(const std::string& launcher, const char* call, const ridgeline_launcher_table& table,
                  const Json& request, Function function) {
  char* bytes = nullptr;
  size_t size = 0;
  const int failed = function(DumpJson(request), &bytes, &size);
  const std::unique_ptr<char, void (*)(char*)> owner(bytes, table.free);
  if (bytes == nullptr) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("launcher {}: {} gave no reply", launcher, call));
  }
  Json reply = CheckedReply(launcher, call, [&] { return Json::parse(bytes, bytes + size); });
  if (failed == 0) return reply;
  CheckedReply(launcher, call, [&] { return reply.at("message").get<std::string>(); });
  throw ErrorFromJson(reply, launcher);
}

class Plugin final : public Launcher {
 public:
  Plugin(Library library, const ridgeline_launcher_table& table, std::string name, const Json& config,
         fs::path state_dir)
      : library_(std::move(library)), table_(table), name_(std::move(name)), state_dir_(std::move(state_dir)) {
    Open(config);
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() override {
    table_.close(session_);
    if (made_state_dir_) RemoveStateDirWithoutFiles();
  }

  const std::string& name() const override { return name_; }
  LauncherCapabilities can() const override { return can_; }

  LauncherStatus Probe() override {
    const Json reply = Call("probe", table_.probe, Json::object());
    return Checked("probe", [&] {
      LauncherStatus status{reply.at("available").get<bool>(), reply.value("why", ""), reply.value("description", ""),
                            0, reply.value("retry", false)};
      if (can_.queue && status.available) reply.at("max_jobs").get_to(status.max_jobs);
      return status;
    });
  }

  std::vector<std::optional<Error>> WhyRefused(std::span<const LaunchJob> jobs) override {
    const Json reply = Call("probe", table_.probe, {{"jobs", EncodeJobs(jobs)}});
    return Checked("probe", [&] {
      std::vector<std::optional<Error>> refusals(jobs.size());
      if (!reply.contains("jobs")) return refusals;
      for (size_t i = 0; i < jobs.size(); ++i) {
        const Json& answer = AnswerFor(reply, jobs[i].key);
        if (const auto error = answer.find("error"); error != answer.end()) refusals[i] = ErrorFromJson(*error, name_);
      }
      return refusals;
    });
  }

  std::vector<std::string> StillBilled(const std::string& sweep) override {
    if (!can_.bill) return {};
    const Json reply = Call("probe", table_.probe, {{"sweep", sweep}});
    return Checked("probe", [&] {
      if (!reply.at("available").get<bool>()) {
        throw Error(ErrorKind::kInfrastructure, fmt::format("the launcher {}: {}", name_, reply.value("why", "")));
      }
      auto texts = reply.at("still_billed").get<std::vector<std::string>>();
      for (std::string& text : texts) text = ShortenToBytes(text, kMaxNameBytes);
      return texts;
    });
  }

  Rendered Render(std::span<const LaunchJob> jobs) override {
    if (!can_.render) {
      throw Error(ErrorKind::kUsage, fmt::format("the launcher {} makes no files to submit by hand", name_),
                  "`ridgeline run` submits its jobs");
    }
    const Json reply = Call("render", table_.render, {{"jobs", EncodeJobs(jobs)}});
    return Checked("render", [&] {
      Rendered rendered;
      rendered.submit = reply.value("submit", "");
      rendered.fetch = reply.value("fetch", "");
      if (const auto asks = reply.find("asks"); asks != reply.end()) asks->get_to(rendered.asks);
      for (const Json& file : reply.at("files")) {
        rendered.files.push_back({file.at("name").get<std::string>(), file.at("content").get<std::string>()});
        const std::string& file_name = rendered.files.back().name;
        if (file_name.empty() || file_name == "." || file_name == ".." || file_name.find('/') != std::string::npos) {
          throw Error(ErrorKind::kInfrastructure, "'" + file_name + "' is not a file name");
        }
      }
      return rendered;
    });
  }

  std::vector<Submission> Submit(std::span<const LaunchJob> jobs) override {
    const Json reply = Call("submit", table_.submit, {{"jobs", EncodeJobs(jobs)}, {"within_ms", kSubmitWithinMs}});
    return Checked("submit", [&] {
      std::vector<Submission> submissions;
      for (const LaunchJob& job : jobs) {
        const Json& answer = AnswerFor(reply, job.key);
        Submission submission{.key = job.key, .native_id = answer.value("native_id", ""), .error = {}};
        if (const auto error = answer.find("error"); error != answer.end()) {
          submission.error = ErrorFromJson(*error, name_);
          submission.retry = error->value("retry", false);
          submission.reason = ReasonFromName(error->value("reason", "")).value_or(submission.reason);
          submission.native_id.clear();
        }
        submission.later = !submission.error && answer.value("later", false);
        submissions.push_back(std::move(submission));
      }
      return submissions;
    });
  }

  std::vector<JobState> PollMany(std::span<const JobRef> jobs) override { return Poll(jobs, /*look=*/false); }
  std::vector<JobState> Look(std::span<const JobRef> jobs) override { return Poll(jobs, /*look=*/true); }

  int64_t PollPauseNs() const override { return poll_pause_ms_ * kNsPerMs; }

  std::vector<bool> Cancel(std::span<const JobRef> jobs) override {
    const Json reply = Call("cancel", table_.cancel, {{"jobs", EncodeRefs(jobs)}});
    return Checked("cancel", [&] {
      std::vector<bool> cancelled;
      for (const JobRef& job : jobs) cancelled.push_back(AnswerFor(reply, job.key).at("cancelled").get<bool>());
      return cancelled;
    });
  }

 private:
  std::vector<JobState> Poll(std::span<const JobRef> jobs, bool look) {
    const Json reply = Call("poll_many", table_.poll_many, {{"jobs", EncodeRefs(jobs)}, {"look", look}});
    return Checked("poll_many", [&] {
      if (can_.poll_pause) reply.at("again_ms").get_to(poll_pause_ms_);
      std::vector<JobState> states;
      states.reserve(jobs.size());
      for (const JobRef& job : jobs) {
        const Json& answer = AnswerFor(reply, job.key);
        JobState state{job.key,
                       answer.value("native_id", job.native_id),
                       Phase(answer.at("state")),
                       {},
                       answer.value("started_unix_s", int64_t{0}) * kNsPerS};
        if (const auto evidence = answer.find("evidence"); evidence != answer.end()) {
          state.evidence = EvidenceIn(*evidence);
        }
        states.push_back(std::move(state));
      }
      return states;
    });
  }

  static Json EncodeJobs(std::span<const LaunchJob> jobs) {
    Json list = Json::array();
    for (const LaunchJob& job : jobs) {
      list.push_back({{"key", job.key},
                      {"sweep", job.sweep},
                      {"job_file", job.job_file.string()},
                      {"job_dir", job.job_dir.string()},
                      {"nodes", job.nodes},
                      {"cpus", job.cpus},
                      {"memory_bytes", job.memory_bytes},
                      {"time_limit_s", job.time_limit_s},
                      {"save_time_s", job.save_time_s},
                      {"own_trainer", job.own_trainer},
                      {"exec", job.exec}});
      if (!job.avoid.empty()) list.back()["avoid"] = job.avoid;
      if (!job.config.is_null()) list.back()["config"] = job.config;
    }
    return list;
  }

  static Json EncodeRefs(std::span<const JobRef> jobs) {
    Json list = Json::array();
    for (const JobRef& job : jobs) list.push_back({{"key", job.key}, {"native_id", job.native_id}});
    return list;
  }

  // Shortens texts to the limit of a result's texts, because a scheduler's words may have any length.
  static std::map<std::string, std::string> EvidenceIn(const Json& document) {
    auto evidence = document.get<std::map<std::string, std::string>>();
    for (auto& [name, text] : evidence) text = ShortenToBytes(text, kMaxTextBytes);
    return evidence;
  }

  static JobPhase Phase(const Json& state) {
    for (const JobPhase phase : {JobPhase::kQueued, JobPhase::kRunning, JobPhase::kEnded, JobPhase::kMissing}) {
      if (state == PhaseName(phase)) return phase;
    }
    throw Error(ErrorKind::kInfrastructure, "there is no job state " + DumpJson(state));
  }

  // So far all launchers answer in the order of the question, so the scan ends at once.
  const Json& AnswerFor(const Json& reply, const std::string& key) {
    const Json& answers = reply.at("jobs");
    for (size_t i = 0; i < answers.size(); ++i) {
      const size_t at = (next_answer_ + i) % answers.size();
      if (answers.at(at).at("key") == key) {
        next_answer_ = at + 1;
        return answers.at(at);
      }
    }
    throw Error(ErrorKind::kInfrastructure, "it does not answer for job " + key);
  }

  template <typename Read>
  auto Checked(const char* call, Read read) -> decltype(read()) {
    next_answer_ = 0;
    return CheckedReply(name_, call, read);
  }

  // A launcher that kept nothing leaves no folders.
  void RemoveStateDirWithoutFiles() {
    std::error_code ec;
    for (fs::recursive_directory_iterator it(state_dir_, ec), end; !ec && it != end; it.increment(ec)) {
      if (!it->is_directory(ec)) return;
    }
    if (ec) return;
    fs::remove_all(state_dir_, ec);
    fs::remove(state_dir_.parent_path(), ec);
  }

  void Open(const Json& config) {
    const Json request = {{"config", config}, {"state_dir", state_dir_.string()}};
    const Json reply = Exchange("open", request, [&](const std::string& text, char** bytes, size_t* size) {
      return table_.open(text.data(), text.size(), &session_, bytes, size);
    });
    if (session_ == nullptr) {
      throw Error(ErrorKind::kInfrastructure, fmt::format("launcher {}: open gave no session", name_));
    }
    try {
      const auto names = Checked("open", [&] { return reply.at("capabilities").get<std::vector<std::string>>(); });
      const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
      can_ = {has("queue"), has("poll_pause"), has("render"), has("bulk"), has("bill")};
    } catch (const Error&) {
      table_.close(session_);
      throw;
    }
  }

  Json Call(const char* call, ridgeline_launcher_call function, const Json& request) {
    if (function != table_.render) {
      made_state_dir_ = made_state_dir_ || !fs::exists(state_dir_);
      MakeDirs(state_dir_);
    }
    return Exchange(call, request, [&](const std::string& text, char** bytes, size_t* size) {
      return function(session_, text.data(), text.size(), bytes, size);
    });
  }

  template <typename Function>
  Json Exchange(const char* call, const Json& request, Function function) {
    return ExchangeWith(name_, call, table_, request, function);
  }

  Library library_;
  ridgeline_launcher_table table_;
  std::string name_;
  fs::path state_dir_;
  bool made_state_dir_ = false;
  ridgeline_launcher_session* session_ = nullptr;
  LauncherCapabilities can_;
  size_t next_answer_ = 0;
  int64_t poll_pause_ms_ = 0;
};

// Returns the table if it passes all checks.
const ridgeline_launcher_table& CheckTable(const ridgeline_launcher_table* table, const fs::path& file) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{}: {}", file.string(), why),
                "use the launcher that was built with this ridgeline");
  };
  if (table == nullptr) refuse(fmt::format("{}() gave no table", kEntry));
  // Nothing besides the version may be read before the version is known.
  if (table->abi_version != RIDGELINE_LAUNCHER_ABI_VERSION) {
    refuse(fmt::format("it speaks launcher ABI {}, and this ridgeline speaks {}", table->abi_version,
                       RIDGELINE_LAUNCHER_ABI_VERSION));
  }
  if (table->table_size < sizeof(ridgeline_launcher_table)) {
    refuse(fmt::format("its table has {} bytes, and ABI {} has {}", table->table_size, RIDGELINE_LAUNCHER_ABI_VERSION,
                       sizeof(ridgeline_launcher_table)));
  }
  const std::pair<const char*, bool> members[] = {
      {"name", table->name != nullptr},         {"version", table->version != nullptr},
      {"open", table->open != nullptr},         {"close", table->close != nullptr},
      {"probe", table->probe != nullptr},       {"render", table->render != nullptr},
      {"submit", table->submit != nullptr},     {"poll_many", table->poll_many != nullptr},
      {"cancel", table->cancel != nullptr},     {"free", table->free != nullptr},
      {"describe", table->describe != nullptr},
  };
  for (const auto& [member, there] : members) {
    if (!there) refuse(fmt::format("its table has no {}", member));
  }
  return *table;
}

struct Loaded {
  Library library;
  const ridgeline_launcher_table* table;
};

Loaded Load(const std::string& name, const fs::path& plugin_dir) {
  const fs::path file = plugin_dir / (std::string(kPrefix) + name + std::string(kSuffix));
  if (!IsPluginName(name) || !fs::exists(file)) {
    const std::vector<std::string> there = AvailableLaunchers(plugin_dir);
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("there is no launcher '{}' in {}{}", name, plugin_dir.string(), DidYouMean(name, there)),
                there.empty() ? "that folder holds no launcher" : "launchers there: " + Join(there, ", "));
  }
  Library library(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("launcher {} cannot be loaded: {}", name, ::dlerror()));
  }
  const auto entry = reinterpret_cast<ridgeline_launcher_entry>(::dlsym(library.get(), kEntry));
  if (entry == nullptr) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: it exports no {}(), so it is not a launcher", file.string(), kEntry));
  }
  const ridgeline_launcher_table& table = CheckTable(entry(RIDGELINE_LAUNCHER_ABI_VERSION), file);
  if (table.name != name) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{}: it calls itself '{}'", file.string(), table.name));
  }
  return {std::move(library), &table};
}

sweep::JobDescription DescriptionIn(const Json& reply) {
  sweep::JobDescription job;
  job.here = reply.value("here", false);
  job.has_srun = reply.value("srun", false);
  if (const auto gpus = reply.find("gpus"); gpus != reply.end()) {
    job.gpus =
        sweep::JobDescription::Gpus{gpus->at("setting").get<std::string>(), gpus->value("asked", ""),
                                    gpus->value("kind", ""), std::max<int64_t>(0, gpus->value("count", int64_t{0}))};
  }
  job.memory_bytes = std::max<int64_t>(0, reply.value("memory_bytes", int64_t{0}));
  if (const auto billed = reply.find("billed"); billed != reply.end()) {
    job.billed_nodes = std::max<int64_t>(0, billed->at("nodes").get<int64_t>());
    job.most_billed_s = std::max<int64_t>(0, billed->at("most_s").get<int64_t>());
  }
  job.secrets = reply.value("secrets", "");
  if (const auto warnings = reply.find("warnings"); warnings != reply.end()) warnings->get_to(job.warnings);
  if (const auto pin = reply.find("pin"); pin != reply.end()) {
    if (!pin->is_object()) throw Error(ErrorKind::kInfrastructure, "pin is no mapping");
    job.pin = *pin;
  }
  return job;
}

// Asks launchers, each of which it loads once.
class Describer {
 public:
  explicit Describer(fs::path plugin_dir) : plugin_dir_(std::move(plugin_dir)) {}

  sweep::JobDescription Ask(const sweep::Launch& launch, const std::string& node) {
    Json request = {{"config", launch.config},
                    {"own_trainer", !launch.definition && IsOurTrainer(launch.trainer)},
                    {"trainer", launch.definition ? launch.definition->name : std::string()},
                    {"has_time_limit", launch.time_limit_s > 0 || launch.time_limit_auto},
                    {"time_limit_s", launch.time_limit_s},
                    {"nodes", std::max<int64_t>(1, launch.nodes)}};
    if (!node.empty()) request["node"] = node;
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = known_.try_emplace({launch.launcher, DumpJson(request)});
    if (!is_new) return known->second;
    try {
      return known->second = AskAnew(launch.launcher, request);
    } catch (...) {
      known_.erase(known);
      throw;
    }
  }

 private:
  sweep::JobDescription AskAnew(const std::string& name, const Json& request) {
    auto loaded = loaded_.find(name);
    if (loaded == loaded_.end()) {
      loaded = loaded_.emplace(name, Load(name, plugin_dir_.empty() ? DataDir("plugins") : plugin_dir_)).first;
    }
    const ridgeline_launcher_table& table = *loaded->second.table;
    const Json reply =
        ExchangeWith(name, "describe", table, request, [&](const std::string& text, char** bytes, size_t* size) {
          return table.describe(text.data(), text.size(), bytes, size);
        });
    return CheckedReply(name, "describe", [&] { return DescriptionIn(reply); });
  }

  const fs::path plugin_dir_;
  std::mutex mutex_;
  std::map<std::string, Loaded> loaded_;
  std::map<std::pair<std::string, std::string>, sweep::JobDescription> known_;  // by launcher and request
};

}  // namespace

std::vector<std::string> AvailableLaunchers(const fs::path& plugin_dir) {
  std::vector<std::string> names;
  ForEachEntry(plugin_dir, [&](const fs::directory_entry& entry) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with(kPrefix) && file.ends_with(kSuffix) && file.size() > kPrefix.size() + kSuffix.size()) {
      names.push_back(file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()));
    }
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::shared_ptr<const sweep::DescribeJob> AskLaunchers(const fs::path& plugin_dir) {
  const auto describer = std::make_shared<Describer>(plugin_dir);
  return std::make_shared<const sweep::DescribeJob>(
      [describer](const sweep::Launch& launch, const std::string& node) { return describer->Ask(launch, node); });
}

std::unique_ptr<Launcher> LoadLauncher(const std::string& name, const Json& config, const fs::path& state_dir,
                                       const fs::path& plugin_dir) {
  Loaded loaded = Load(name, plugin_dir);
  return std::make_unique<Plugin>(std::move(loaded.library), *loaded.table, name, config, fs::absolute(state_dir));
}

std::unique_ptr<Launcher> LoadLauncher(const std::string& name, const Json& config, const fs::path& state_dir) {
  return LoadLauncher(name, config, state_dir, DataDir("plugins"));
}

}  // namespace ridgeline::launch
