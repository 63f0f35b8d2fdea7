// Slurm through ridgeline-slurm-agent: a process of ours that lives as long as this client. They exchange lines of
// JSON.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "common/process.h"
#include "slurm/client.h"

namespace ridgeline::slurm {
namespace {

using plugin::Fd;
using plugin::Json;

constexpr int64_t kTimeoutMs = 60'000;  // libslurm's own timeout is 10 s for each message

// "22.05.8" -> "22.05". Releases have different protocols.
std::string Release(const std::string& version) { return version.substr(0, version.find('.', version.find('.') + 1)); }

class AgentClient final : public Client {
 public:
  explicit AgentClient(std::filesystem::path agent) : agent_(std::move(agent)) { Start(); }
  AgentClient(const AgentClient&) = delete;
  AgentClient& operator=(const AgentClient&) = delete;
  ~AgentClient() override { Stop(); }

  std::string Description() const override { return "ridgeline-slurm-agent"; }

  Facts GetFacts() override {
    const Json reply = Ask({{"ask", "facts"}});
    Facts facts;
    reply.at("controller").get_to(facts.version);
    if (const auto own = reply.at("client").get<std::string>(); Release(own) != Release(facts.version)) {
      throw SlurmError(Trouble::kRefused, fmt::format("ridgeline-slurm-agent is of Slurm {}, and this cluster's is {}",
                                                      own, facts.version));
    }
    reply.at("cluster").get_to(facts.cluster);
    reply.at("max_array_size").get_to(facts.max_array_size);
    reply.at("max_job_count").get_to(facts.max_job_count);
    reply.at("message_timeout_s").get_to(facts.message_timeout_s);
    reply.at("min_job_age_s").get_to(facts.min_job_age_s);
    reply.at("accounting").get_to(facts.accounting);
    return facts;
  }

  int64_t Submit(const BatchJob& batch) override {
    // The agent knows the options whose meaning is the same in all releases. Only sbatch itself can read the others.
    if (!batch.options.sbatch.empty() || !batch.options.gpu_bind.empty()) return MakeToolsClient()->Submit(batch);
    return Ask(Request(batch)).at("job_id").get<int64_t>();
  }

  void Test(const BatchJob& batch) const override { MakeToolsClient()->Test(batch); }

  std::optional<std::vector<Row>> Jobs() override {
    const Json reply = Ask({{"ask", "jobs"}});
    if (!reply.at("changed").get<bool>()) return std::nullopt;
    return Rows(reply);
  }

  std::vector<Row> Accounted(const std::vector<std::string>& job_names, int64_t since_unix_s) override {
    return Rows(Ask({{"ask", "finished"}, {"names", job_names}, {"since", since_unix_s}}));
  }

  std::vector<Row> AccountedById(const std::vector<int64_t>& ids, int64_t since_unix_s) override {
    return Rows(Ask({{"ask", "finished"}, {"ids", ids}, {"since", since_unix_s}}));
  }

  void Cancel(const std::vector<std::string>& ids) override {
    const Json reply = Ask({{"ask", "cancel"}, {"ids", ids}});
    for (const Json& code : reply.at("codes")) {
      if (const auto trouble = TroubleOf(code.get<int64_t>(), ""); code != 0 && trouble != Trouble::kRefused) {
        throw SlurmError(trouble, fmt::format("a job was not cancelled: error {}", code.get<int64_t>()));
      }
    }
  }

 private:
  static std::vector<Row> Rows(const Json& reply) {
    std::vector<Row> rows;
    for (const Json& row : reply.at("jobs")) rows.push_back(RowFromJson(row));
    return rows;
  }

  // The form for libslurm, in which GPUs are one kind of several resources of a node.
  static std::string GresOf(const Options& options) {
    const std::string gpus = options.gpus.empty() ? "" : "gpu:" + options.gpus;
    return gpus + (gpus.empty() || options.gres.empty() ? "" : ",") + options.gres;
  }

  static Json Request(const BatchJob& batch) {
    const Options& options = batch.options;
    return {{"ask", "submit"},
            {"script", "#!/bin/bash\n" + batch.script},
            {"name", batch.job_name},
            {"comment", batch.comment},
            {"work_dir", batch.work_dir},
            {"output", batch.output},
            {"array", batch.is_array ? ArrayText(batch) : ""},
            {"dependency", batch.dependency},
            {"environment", SubmitEnvironment()},
            {"partition", options.partition},
            {"account", options.account},
            {"qos", options.qos},
            {"reservation", options.reservation},
            {"constraint", options.constraint},
            {"nodelist", options.nodelist},
            {"exclude", ExcludeText(batch)},
            {"nodes", options.nodes},
            {"tasks", options.ntasks > 0 ? options.ntasks : options.nodes},
            {"tasks_per_node", options.nodes > 1 && options.ntasks == 0 ? 1 : 0},
            {"cpus_per_task", options.cpus},
            {"memory_mib", std::max<int64_t>(0, options.memory_mib)},
            {"whole_memory", options.memory_mib == kWholeNode},
            {"time_minutes", options.time_minutes},
            {"gres", GresOf(options)},
            {"exclusive", options.exclusive},
            {"requeue", options.requeue},
            {"signal", batch.warning.signal},
            {"signal_lead_s", batch.warning.lead_s},
            {"signal_batch_only", batch.warning.batch_only}};
  }

  void Start() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw SlurmError(Trouble::kRefused, "cannot make a socket");
    }
    socket_ = Fd(ends[0]);
    const Fd theirs(ends[1]);
    words_ = Fd(::memfd_create("agent's words", MFD_CLOEXEC));
    words_read_ = 0;
    try {
      pid_ = plugin::SpawnForOurLife({agent_.string()}, SubmitEnvironment(), theirs.get(), theirs.get(), words_.get());
    } catch (const plugin::Failure& e) {
      throw SlurmError(Trouble::kRefused, e.what());
    }
    buffer_.clear();
  }

  void Stop() {
    if (pid_ <= 0) return;
    socket_ = Fd();  // it ends when there is nothing more to read
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  // Returns what libslurm has printed since the last call.
  std::string LastWords() {
    std::array<char, 1024> text{};
    const ssize_t size = ::pread(words_.get(), text.data(), text.size(), words_read_);
    words_read_ = ::lseek(words_.get(), 0, SEEK_END);
    return {text.data(), static_cast<size_t>(size > 0 ? size : 0)};
  }

  [[noreturn]] void Fail(const std::string& what) {
    const std::string words = WordsOf(LastWords());
    Stop();
    throw SlurmError(Trouble::kNoAnswer,
                     fmt::format("ridgeline-slurm-agent {}: {}", what, words.empty() ? "it said nothing" : words));
  }

  void Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) Fail("has ended");
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

  std::string ReadLine() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeoutMs);
    for (;;) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      pollfd stream{socket_.get(), POLLIN, 0};
      if (left <= 0 || ::poll(&stream, 1, static_cast<int>(left)) == 0) Fail("does not answer");
      std::array<char, 65536> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init): read() fills it
      const ssize_t count = ::read(socket_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) Fail("has ended");
      buffer_.append(bytes.data(), static_cast<size_t>(count));
    }
  }

  Json Ask(const Json& request) {
    if (pid_ <= 0) Start();
    Send(request.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    const Json reply = Json::parse(ReadLine());
    if (const auto error = reply.find("error"); error != reply.end()) {
      // Besides its number, the controller has told libslurm details, for example which limit it was.
      const std::string words = LastWords() + '\n' + error->at("text").get<std::string>();
      throw SlurmError(TroubleOf(error->at("code").get<int64_t>(), words), WordsOf(words));
    }
    words_read_ = ::lseek(words_.get(), 0, SEEK_END);  // words of a successful call are of no use
    return reply.at("ok");
  }

  const std::filesystem::path agent_;
  pid_t pid_ = 0;
  Fd socket_;
  Fd words_;  // its standard error
  off_t words_read_ = 0;
  std::string buffer_;
};

}  // namespace

std::unique_ptr<Client> MakeAgentClient(const std::filesystem::path& agent) {
  return std::make_unique<AgentClient>(agent);
}

}  // namespace ridgeline::slurm
