// The API server, through `kubectl proxy` and libcurl.
#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "common/process.h"
#include "kubernetes/cluster.h"
#include "ridgeline/job_line.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;
namespace fs = std::filesystem;

constexpr int64_t kCallTimeoutMs = 30'000;
constexpr std::chrono::seconds kStartTimeout{15};
constexpr int kPollMs = 1000;
constexpr std::chrono::seconds kLoginPause{10};
constexpr size_t kAtOnce = 16;  // calls at once
constexpr const char* kFolderPrefix = "ridgeline-kubectl-";

// A folder that only we may enter, because everybody who reaches the socket in it acts as us. Its name has our process
// id, so that the next process knows which folders are left over.
class PrivateFolder {
 public:
  PrivateFolder() {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    std::error_code ec;
    const fs::path base = runtime != nullptr && fs::is_directory(runtime, ec) ? fs::path(runtime) : fs::path("/tmp");
    RemoveStale(base);
    std::string name = (base / fmt::format("{}{}-XXXXXX", kFolderPrefix, ::getpid())).string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Failure(Failure::Kind::kInfrastructure,
                    fmt::format("cannot make a folder in {}: {}", base.string(), std::strerror(errno)));
    }
    path_ = name;
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ec;
    fs::remove_all(path_, ec);
  }
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  static void RemoveStale(const fs::path& base) {
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator(base, ec)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(kFolderPrefix)) continue;
      pid_t pid = 0;
      const char* digits = name.data() + std::strlen(kFolderPrefix);
      if (std::from_chars(digits, name.data() + name.size(), pid).ptr == digits || pid <= 0) continue;
      struct stat status {};
      const bool ours = ::lstat(entry.path().c_str(), &status) == 0 && status.st_uid == ::geteuid();
      if (ours && ::kill(pid, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), ec);
    }
  }
  fs::path path_;
};

bool Accepts(const fs::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof address.sun_path) return false;
  std::memcpy(static_cast<char*>(address.sun_path), socket.c_str(), socket.native().size());
  const plugin::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// Runs `kubectl proxy` while this object lives.
class Proxy {
 public:
  explicit Proxy(const std::vector<std::string>& kubectl) {
    const fs::path log = folder_ / "log";
    const plugin::Fd none(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const plugin::Fd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    std::vector<std::string> argv = kubectl;
    argv.insert(argv.end(), {"proxy", "--unix-socket=" + socket()});
    pid_ = plugin::SpawnForOurLife(argv, plugin::EnvironmentWithout({}), none.get(), out.get(), out.get());
    const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
    while (!Accepts(socket())) {
      const bool late = std::chrono::steady_clock::now() > deadline;
      if (late || !Runs()) {
        std::string said = ReadLogTail(log, 500);
        std::replace(said.begin(), said.end(), '\n', ' ');
        throw Failure(Failure::Kind::kInfrastructure,
                      fmt::format("kubectl cannot be used: {}", late ? "it is silent" : said),
                      "`kubectl version` must work here, with the same kubeconfig and context");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  ~Proxy() {
    if (!Runs()) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  std::string socket() const { return folder_ / "socket"; }
  bool Runs() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
    return pid_ > 0;
  }

 private:
  PrivateFolder folder_;
  pid_t pid_ = 0;
};

// One exchange, from its beginning to its end.
class Exchange {
 public:
  Exchange(CURLM* multi, const std::string& socket, const Request& request, bool endless)
      : multi_(multi), easy_(::curl_easy_init()) {
    Set(CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
    Set(CURLOPT_URL, ("http://localhost" + request.path).c_str());
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_WRITEFUNCTION, &Take);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_PRIVATE, this);
    if (!endless) Set(CURLOPT_TIMEOUT_MS, static_cast<long>(kCallTimeoutMs));
    if (endless) Set(CURLOPT_BUFFERSIZE, 16L * 1024);
    if (request.method != "GET") Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (!request.body.is_null()) {
      text_ = request.body.dump(-1, ' ', false, Json::error_handler_t::replace);
      headers_ = ::curl_slist_append(headers_, "Content-Type: application/json");
      headers_ = ::curl_slist_append(headers_, "Expect:");  // send the body without asking first
      Set(CURLOPT_HTTPHEADER, headers_);
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(text_.size()));
      Set(CURLOPT_POSTFIELDS, text_.c_str());
    }
    ::curl_multi_add_handle(multi_, easy_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    ::curl_multi_remove_handle(multi_, easy_);
    ::curl_easy_cleanup(easy_);
    ::curl_slist_free_all(headers_);
  }

  void End(CURLcode result) {
    ended_ = true;
    if (result != CURLE_OK) problem_ = error_[0] != '\0' ? error_ : ::curl_easy_strerror(result);
  }
  bool ended() const { return ended_; }
  const std::string& problem() const { return problem_; }
  int64_t code() const {
    long code = 0;
    ::curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }
  std::string& body() { return body_; }
  // As in Response.
  int64_t date_unix_s() const {
    curl_header* date = nullptr;
    if (::curl_easy_header(easy_, "Date", 0, CURLH_HEADER, -1, &date) != CURLHE_OK) return 0;
    return std::max<int64_t>(0, ::curl_getdate(date->value, nullptr));
  }
  int64_t retry_after_s() const {
    curl_off_t seconds = 0;
    ::curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &seconds);
    return seconds;
  }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    ::curl_easy_setopt(easy_, option, value);
  }
  static size_t Take(const char* data, size_t size, size_t count, void* self) {
    static_cast<Exchange*>(self)->body_.append(data, size * count);
    return size * count;
  }

  CURLM* multi_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  std::string text_;
  std::string body_;
  std::string problem_;
  char error_[CURL_ERROR_SIZE] = {};
  bool ended_ = false;
};

class ProxyStream final : public Stream {
 public:
  explicit ProxyStream(std::unique_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  int64_t code() const override { return exchange_->code(); }
  bool ended() const override { return exchange_->ended(); }
  std::string problem() const override { return exchange_->problem(); }
  int64_t retry_after_s() const override { return exchange_->retry_after_s(); }

  bool Next(std::string& line) override {
    std::string& body = exchange_->body();
    for (size_t end = body.find('\n', searched_); end != std::string::npos; end = body.find('\n', searched_)) {
      line = body.substr(at_, end - at_);
      at_ = searched_ = end + 1;
      if (!std::exchange(too_long_, false)) return true;
    }
    body.erase(0, std::exchange(at_, 0));
    if (body.size() > kMaxJobLineBytes) {  // a line that is too long is skipped to its end
      body.clear();
      too_long_ = true;
    }
    searched_ = body.size();
    if (!ended() || body.empty()) return false;
    searched_ = 0;
    line = std::exchange(body, {});
    return !too_long_;
  }

 private:
  std::unique_ptr<Exchange> exchange_;
  size_t at_ = 0;          // position of the first byte that is not handed over yet
  size_t searched_ = 0;    // there is no line end from `at_` to here
  bool too_long_ = false;  // what comes is the rest of a line that is too long for memory
};

// kubectl, with the options that choose the cluster.
std::vector<std::string> Kubectl(const Options& options) {
  std::vector<std::string> argv = {"kubectl"};
  if (!options.kubeconfig.empty()) argv.push_back("--kubeconfig=" + options.kubeconfig);
  if (!options.context.empty()) argv.push_back("--context=" + options.context);
  return argv;
}

// Chooses the namespace as kubectl does: the given one, the context's, that of the pod we are in, else `default`.
std::string Namespace(const Options& options) {
  if (!options.name_space.empty()) return options.name_space;
  std::vector<std::string> argv = Kubectl(options);
  argv.insert(argv.end(), {"config", "view", "--minify", "--output=jsonpath={..namespace}"});
  const plugin::Finished asked = plugin::RunProgram(argv, plugin::EnvironmentWithout({}), "", kCallTimeoutMs);
  if (asked.ok() && !asked.out.empty()) return asked.out;
  std::string of_pod = ReadForeignFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace", kMaxRecordBytes,
                                       ForeignFile::Links::kFollowed)
                           .value_or("");
  return !asked.ok() && !of_pod.empty() ? of_pod : "default";
}

class ProxiedCluster final : public Cluster {
 public:
  ProxiedCluster(const Options& options, const plugin::Clock& clock)
      : Cluster(clock, *options.kind),
        kubectl_(Kubectl(options)),
        name_space_(Namespace(options)),
        multi_(::curl_multi_init()) {
    proxy_.emplace(kubectl_);
  }
  ~ProxiedCluster() override { ::curl_multi_cleanup(multi_); }
  ProxiedCluster(const ProxiedCluster&) = delete;
  ProxiedCluster& operator=(const ProxiedCluster&) = delete;

  const std::string& name_space() const override { return name_space_; }

  std::vector<Response> AskAll(const std::vector<Request>& requests) override {
    std::vector<Response> responses = AskAllOnce(requests);
    const auto unknown = [](const Response& response) { return response.code == kUnauthorized; };
    if (!std::any_of(responses.begin(), responses.end(), unknown) || !LogInAgain()) return responses;
    // A refused login means that nothing was done, so these requests are sent again.
    std::vector<Request> again;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (unknown(responses[i])) again.push_back(requests[i]);
    }
    std::vector<Response> answers = AskAllOnce(again);
    auto answer = answers.begin();
    for (Response& response : responses) {
      if (unknown(response)) response = std::move(*answer++);
    }
    return responses;
  }

  std::unique_ptr<Stream> OpenStream(const std::string& path) override {
    return std::make_unique<ProxyStream>(std::make_unique<Exchange>(multi_, Socket(), Request{"GET", path, {}}, true));
  }

  void Await(std::chrono::milliseconds most) override {
    ::curl_multi_poll(multi_, nullptr, 0, static_cast<int>(most.count()), nullptr);
    Pump();
  }

  void Pump() override {
    int running = 0;
    ::curl_multi_perform(multi_, &running);
    int left = 0;
    while (const CURLMsg* message = ::curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Exchange* exchange = nullptr;
      ::curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
      exchange->End(message->data.result);
    }
  }

 protected:
  // kubectl reads its configuration, including the token, when it starts.
  bool LogInAgain() override {
    if (last_login_ && clock().Now() - *last_login_ < kLoginPause) return false;
    last_login_ = clock().Now();
    proxy_.reset();
    return true;
  }

 private:
  std::vector<Response> AskAllOnce(const std::vector<Request>& requests) {
    std::vector<Response> responses;
    for (size_t first = 0; first < requests.size(); first += kAtOnce) {
      std::vector<std::unique_ptr<Exchange>> calls;
      for (size_t i = first; i < std::min(first + kAtOnce, requests.size()); ++i) {
        calls.push_back(std::make_unique<Exchange>(multi_, Socket(), requests[i], false));
      }
      for (const auto& call : calls) {
        while (!call->ended()) {
          Pump();
          if (!call->ended()) ::curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
        }
        const bool answered = call->problem().empty();
        responses.push_back({answered ? call->code() : 0, std::move(call->body()), call->problem(), call->date_unix_s(),
                             call->retry_after_s()});
      }
    }
    return responses;
  }

  // Starts the proxy again if somebody ended it.
  std::string Socket() {
    if (!proxy_ || !proxy_->Runs()) {
      proxy_.reset();
      proxy_.emplace(kubectl_);
    }
    return proxy_->socket();
  }

  std::vector<std::string> kubectl_;
  std::string name_space_;
  std::optional<Proxy> proxy_;
  std::optional<plugin::Clock::Time> last_login_;
  CURLM* multi_;
};

}  // namespace

std::unique_ptr<Cluster> Cluster::Connect(const Options& options, const plugin::Clock& clock) {
  static const CURLcode kReady = ::curl_global_init(CURL_GLOBAL_ALL);
  if (kReady != CURLE_OK) throw Failure(Failure::Kind::kInfrastructure, "libcurl cannot be used");
  return std::make_unique<ProxiedCluster>(options, clock);
}

}  // namespace ridgeline::kubernetes
