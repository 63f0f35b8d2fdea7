// The local launcher: jobs as processes of this machine, each on cores of its own.
#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/plugin_api.h"
#include "local/client.h"
#include "local/config.h"
#include "local/render.h"
#include "ridgeline/launcher.h"

namespace ridgeline::local {
namespace {

using plugin::AnswerEach;
using plugin::Failure;
using plugin::Json;

// Beside this library.
std::filesystem::path KeeperProgram() {
  Dl_info info{};
  ::dladdr(reinterpret_cast<const void*>(&KeeperProgram), &info);
  return std::filesystem::path(info.dli_fname).parent_path() / "ridgeline-local-keeper";
}

Client ClientFor(const Json& request) {
  return {request.at("state_dir").get<std::string>(), SlotCores(request.at("config"), AllowedCores()), KeeperProgram()};
}

Json AnswerProbe(const Json& request) {
  const auto slots = SlotCores(request.at("config"), AllowedCores());
  const std::string description = fmt::format("this machine, {} at once with {} {} each",
                                              slots.size() == 1 ? "1 job" : fmt::format("{} jobs", slots.size()),
                                              slots.front().size(), slots.front().size() == 1 ? "core" : "cores");
  const std::filesystem::path keeper = KeeperProgram();
  std::error_code ec;
  const bool available = std::filesystem::exists(keeper, ec);
  return {{"available", available},
          {"why", available ? "" : fmt::format("{} is missing", keeper.string())},
          {"description", description}};
}

Json AnswerRender(const Json& request) {
  return {{"files", {{{"name", "run-jobs.sh"}, {"content", RenderScript(request.at("jobs"))}}}}, {"submit", "sh FILE"}};
}

Json AnswerSubmit(const Json& request) {
  Client client = ClientFor(request);
  return AnswerEach(request, [&](const Json& job) -> Json {
    try {
      client.Submit(job);
      return {{"native_id", job.at("key")}};  // the job's folder; the pid changes when it is started again
    } catch (const Failure& e) {
      return {{"error", e.ToJson()}};
    }
  });
}

Json AnswerPollMany(const Json& request) {
  Client client = ClientFor(request);
  return AnswerEach(request, [&](const Json& job) {
    Json answer = client.Poll(job.at("key").get<std::string>());
    answer["native_id"] = job.at("key");
    return answer;
  });
}

Json AnswerCancel(const Json& request) {
  Client client = ClientFor(request);
  return AnswerEach(request, [&](const Json& job) -> Json {
    return {{"cancelled", client.Cancel(job.at("key").get<std::string>())}};
  });
}

}  // namespace
}  // namespace ridgeline::local

extern "C" __attribute__((visibility("default"))) const ridgeline_launcher_table* ridgeline_launcher(uint32_t);

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  using namespace ridgeline::local;  // NOLINT(google-build-using-namespace)
  return ridgeline::plugin::Table<AnswerProbe, AnswerRender, AnswerSubmit, AnswerPollMany, AnswerCancel>("local");
}
