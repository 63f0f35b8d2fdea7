#include "kubernetes/watch.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "common/url.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;

constexpr int kPageObjects = 500;
constexpr int kWatchS = 300;  // then the server ends the watch, and it is opened again
// A watch that is silent for longer than the server lets it live has lost its server.
constexpr std::chrono::seconds kSilent{kWatchS + 60};

}  // namespace

Watch::Watch(Cluster& cluster, const plugin::Clock& clock, std::string path, const std::string& selector,
             Handler handler)
    : cluster_(cluster),
      clock_(clock),
      path_(std::move(path)),
      selector_(plugin::UrlEncode(selector)),
      handler_(std::move(handler)) {}

void Watch::Refresh() {
  if (stream_ && clock_.Now() - opened_ > kSilent) stream_.reset();
  if (version_.empty()) List();
  if (!stream_) Open();
  cluster_.Pump();
  std::string line;
  std::string refusal;
  while (stream_ && stream_->Next(line)) {
    if (stream_->code() >= 400 && stream_->code() != kGone) {
      refusal += line;
    } else if (stream_->code() == kGone || !Take(line)) {
      stream_.reset();
      version_.clear();
      List();
      Open();
    }
  }
  if (!stream_ || !stream_->ended()) return;
  const int64_t code = stream_->code();
  const std::string problem = stream_->problem();
  const int64_t retry_after_s = stream_->retry_after_s();
  if (clock_.Now() - opened_ < std::chrono::seconds(kWatchS)) cluster_.NoteOutage();
  stream_.reset();
  if (code >= 200 && code < 300) return;  // its time was over, or its server's; the next question asks for what follows
  throw cluster_.ToFailure({problem.empty() ? code : 0, refusal, problem, 0, retry_after_s}, "watch " + path_);
}

void Watch::List() {
  handler_.listing();
  std::string version;
  std::string more;
  do {
    std::string path = fmt::format("{}?labelSelector={}&limit={}", path_, selector_, kPageObjects);
    if (!more.empty()) path += "&continue=" + plugin::UrlEncode(more);
    const Response response = cluster_.Call({"GET", path, {}});
    if (response.code == kGone && !more.empty()) {  // the list changed too much while it was read
      more.clear();
      handler_.listing();
      continue;
    }
    if (!response.ok()) throw cluster_.ToFailure(response, "list " + path_);
    const Json list = response.Document();
    for (const Json& object : list.at("items")) handler_.changed(object);
    const Json& metadata = list.at("metadata");
    version = metadata.value("resourceVersion", "");
    more = metadata.value("continue", "");
  } while (!more.empty());
  version_ = version;
}

void Watch::Open() {
  stream_ = cluster_.Open(
      fmt::format("{}?labelSelector={}&watch=1&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}", path_,
                  selector_, kWatchS, plugin::UrlEncode(version_)));
  opened_ = clock_.Now();
}

bool Watch::Take(const std::string& line) {
  const Json event = Json::parse(line, nullptr, false);
  // A line that was cut ends its stream, and comes again.
  if (!event.is_object() || !event.contains("object")) return true;
  const std::string type = event.value("type", "");
  const Json& object = event.at("object");
  if (type == "ERROR" || event.value("kind", "") == "Status") return false;
  version_ = object.at("metadata").value("resourceVersion", version_);
  if (type == "ADDED" || type == "MODIFIED") handler_.changed(object);
  if (type == "DELETED") handler_.deleted(object);
  return true;
}

}  // namespace ridgeline::kubernetes
