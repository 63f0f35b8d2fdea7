#include "common/launcher.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "common/keys.h"
#include "ridgeline/json_fault.h"

namespace ridgeline::plugin {
namespace {

constexpr int64_t kAnyTimeMs = int64_t{24} * 3600 * 1000;

// Serves one call. `answer` maps the request document to the reply document, and may throw.
template <typename Answer>
int Serve(const char* request, size_t request_size, char** reply, size_t* reply_size, Answer answer) noexcept {
  *reply = nullptr;
  *reply_size = 0;
  try {
    int failed = 1;
    Json document;
    try {
      document = answer(Json::parse(request, request + request_size));
      failed = 0;
    } catch (const Error& e) {
      document = Failure::Of(e).ToJson();
    } catch (const Json::exception& e) {
      document =
          Failure(Failure::Kind::kInvalidInput, std::string("a request it cannot read: ") + JsonFault(e)).ToJson();
    } catch (const std::exception& e) {
      document = Failure(Failure::Kind::kInfrastructure, e.what()).ToJson();
    }
    const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    *reply = static_cast<char*>(std::malloc(text.size()));
    if (*reply == nullptr) return 1;
    std::memcpy(*reply, text.data(), text.size());
    *reply_size = text.size();
    return failed;
  } catch (...) {  // there is no memory even for the answer, which the null reply shows
    return 1;
  }
}

Launcher& Of(ridgeline_launcher_session* session) { return *reinterpret_cast<Launcher*>(session); }

Json AnswerProbe(Launcher& launcher, const Json& request) {
  const Availability availability = launcher.Probe();
  Json reply = ToJson(availability);
  const auto sweep = request.find("sweep");
  if (sweep != request.end() && availability.available) {
    reply["still_billed"] = launcher.StillBilled(sweep->get<std::string>());
  }
  const auto jobs = request.find("jobs");
  if (jobs == request.end() || !availability.available) return reply;
  const std::vector<std::string> keys = KeysOf(*jobs);
  for (const std::string& key : keys) CheckKey(key);
  const std::vector<std::optional<Failure>> refusals = launcher.WhyRefused(*jobs);
  reply["jobs"] = Json::array();
  for (size_t i = 0; i < keys.size(); ++i) {
    reply["jobs"].push_back({{"key", keys[i]}});
    if (refusals.at(i)) reply["jobs"].back()["error"] = refusals.at(i)->ToJson();
  }
  return reply;
}

Json AnswerRender(Launcher& launcher, const Json& request) {
  for (const std::string& key : KeysOf(request.at("jobs"))) CheckKey(key);
  return ToJson(launcher.Render(request.at("jobs")));
}

Json AnswerSubmit(Launcher& launcher, const Json& request) {
  const Json& jobs = request.at("jobs");
  Json sound = Json::array();
  std::vector<Submission> answers;  // at first only those that are refused here
  for (const Json& job : jobs) {
    answers.emplace_back();
    try {
      CheckKey(job.at("key").get<std::string>());
      sound.push_back(job);
    } catch (const Failure& e) {
      answers.back().error = e;
    }
  }
  std::vector<Submission> given =
      launcher.Submit(sound, std::chrono::milliseconds(request.value("within_ms", kAnyTimeMs)));
  auto next = given.begin();
  for (Submission& answer : answers) {
    if (!answer.error) answer = std::move(*next++);
  }
  return {{"jobs", ToJson(KeysOf(jobs), answers)}};
}

std::vector<std::string> SoundKeys(const std::vector<std::string>& keys) {
  std::vector<std::string> sound;
  for (const std::string& key : keys) {
    if (IsKey(key)) sound.push_back(key);
  }
  return sound;
}

// An invalid key has no job.
template <typename Answer>
std::vector<Answer> WithUnsound(const std::vector<std::string>& keys, std::vector<Answer> given) {
  std::vector<Answer> answers;
  auto next = given.begin();
  for (const std::string& key : keys) answers.push_back(IsKey(key) ? std::move(*next++) : Answer());
  return answers;
}

Json AnswerPoll(Launcher& launcher, const Json& request) {
  const std::vector<std::string> keys = KeysOf(request.at("jobs"));
  Polled polled = request.value("look", false) ? launcher.Look(SoundKeys(keys)) : launcher.Poll(SoundKeys(keys));
  Json reply = {{"jobs", ToJson(keys, WithUnsound(keys, std::move(polled.states)))}};
  if (polled.again_ms > 0) reply["again_ms"] = polled.again_ms;
  return reply;
}

Json AnswerCancel(Launcher& launcher, const Json& request) {
  const std::vector<std::string> keys = KeysOf(request.at("jobs"));
  return {{"jobs", ToJson(keys, WithUnsound(keys, launcher.Cancel(SoundKeys(keys))))}};
}

template <Json (*kAnswer)(Launcher&, const Json&)>
int Call(ridgeline_launcher_session* session, const char* request, size_t request_size, char** reply,
         size_t* reply_size) {
  return Serve(request, request_size, reply, reply_size,
               [&](const Json& document) { return kAnswer(Of(session), document); });
}

Json NamesOf(const Capabilities& can) {
  Json names = Json::array();
  if (can.queue) names.push_back("queue");
  if (can.poll_pause) names.push_back("poll_pause");
  if (can.render) names.push_back("render");
  if (can.bulk) names.push_back("bulk");
  if (can.bill) names.push_back("bill");
  return names;
}

}  // namespace

int OpenSession(OpenLauncher open, const char* request, size_t request_size, ridgeline_launcher_session** session,
                char** reply, size_t* reply_size) {
  *session = nullptr;
  return Serve(request, request_size, reply, reply_size, [&](const Json& document) -> Json {
    std::unique_ptr<Launcher> launcher = open(document.at("config"), document.at("state_dir").get<std::string>());
    Json answer = {{"capabilities", NamesOf(launcher->Can())}};
    *session = reinterpret_cast<ridgeline_launcher_session*>(launcher.release());
    return answer;
  });
}

int AnswerDescribe(Describe describe, const char* name, const char* request, size_t request_size, char** reply,
                   size_t* reply_size) {
  return Serve(request, request_size, reply, reply_size, [&](const Json& document) {
    const Json& config = document.at("config");
    JobToDescribe job;
    if (const auto own = config.find(name); own != config.end() && own->is_object()) job.own = *own;
    job.own_trainer = document.value("own_trainer", false);
    job.trainer = document.value("trainer", "");
    job.has_time_limit = document.value("has_time_limit", false);
    job.time_limit_s = document.value("time_limit_s", int64_t{0});
    job.nodes = document.value("nodes", int64_t{1});
    job.node = document.value("node", "");
    return ToJson(describe(job));
  });
}

ridgeline_launcher_table TableWithoutOpen(const char* name) {
  ridgeline_launcher_table table{};
  table.abi_version = RIDGELINE_LAUNCHER_ABI_VERSION;
  table.table_size = sizeof table;
  table.name = name;
  table.version = "1";
  table.close = [](ridgeline_launcher_session* session) { delete &Of(session); };
  table.probe = Call<AnswerProbe>;
  table.render = Call<AnswerRender>;
  table.submit = Call<AnswerSubmit>;
  table.poll_many = Call<AnswerPoll>;
  table.cancel = Call<AnswerCancel>;
  table.free = [](char* reply) { std::free(reply); };
  return table;
}

}  // namespace ridgeline::plugin
