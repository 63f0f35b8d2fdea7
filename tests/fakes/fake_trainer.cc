// A trainer that does what it is told: fake_trainer MODE… --spec FILE --result FILE. With several modes, the point with
// seed n does the n-th. A mode is a word, perhaps with a value: "ok", "exit=3", "slow=20", … "as=FILE" uses the mode
// that the file contains by then, so that the same trainer can behave differently.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "run/consistency.h"
#include "run/result.h"
#include "run/spec.h"

namespace {

using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one file

struct Invocation {
  std::vector<std::string> modes;
  std::string spec;
  std::string result;
};

Invocation Read(int argc, char** argv) {
  Invocation call;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--spec" && i + 1 < argc) {
      call.spec = argv[++i];
    } else if (word == "--result" && i + 1 < argc) {
      call.result = argv[++i];
    } else {
      call.modes.push_back(word);
    }
  }
  return call;
}

RunResult OkResult(const RunSpec& spec, int64_t tokens_per_s = 100) {
  const int64_t ns_a_token = 1'000'000'000 / tokens_per_s;
  RunResult result;
  result.point_id = PointId(spec);
  result.status = RunStatus::kOk;
  result.device = "fake";
  result.tokens_per_step = spec.batch_size * spec.seq_length * spec.grad_accumulation * spec.ranks;
  const int64_t step_ns = result.tokens_per_step * ns_a_token;
  const auto steps = static_cast<size_t>(StepsOf(spec));
  result.throughput = {1e9 / static_cast<double>(ns_a_token), 1e9 / static_cast<double>(ns_a_token)};
  result.step_ns = {std::vector<int64_t>(steps, step_ns), step_ns, step_ns, 0};
  result.loss.assign(steps, 2.5);
  result.loss.back() = 2.25;
  return result;
}

std::string Text(const RunResult& result) { return DumpJson(EncodeResult(result)); }

// Writes as a trainer must, but without sync: a fake's result need not survive a crash of the machine. Returns false if
// the disk is full.
bool TryToWrite(const std::string& file, const std::string& text) {
  const std::string temporary = file + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(temporary, file, failed);
  return out && !failed;
}

void Write(const std::string& file, const std::string& text) {
  if (!TryToWrite(file, text)) ::_exit(3);
}

// Puts something else where a file should be, as a trainer might.
void PutInPlace(const std::string& what, const std::filesystem::path& file) {
  std::filesystem::remove(file);
  if (what == "pipe") ::mkfifo(file.c_str(), 0644);
  if (what == "folder") std::filesystem::create_directory(file);
  if (what == "link") std::filesystem::create_symlink("/dev/zero", file);
  if (what == "giant" || what == "message") std::ofstream(file, std::ios::binary) << "";
  if (what == "giant") std::filesystem::resize_file(file, std::uintmax_t{1} << 40);
  if (what == "message") {
    const std::string part(size_t{1} << 20, 'x');
    std::ofstream out(file, std::ios::binary);
    out << R"({"version": 1, "status": "crashed", "message": ")";
    for (int mebibyte = 0; mebibyte < 200; ++mebibyte) out << part;
    out << "\"}";
  }
  if (what == "depths") std::ofstream(file) << R"({"version": 1, "parameters": )" << std::string(1 << 20, '[');
  if (what == "closed-depths") {
    std::ofstream(file) << R"({"version": 1, "status": "ok", "parameters": )" << std::string(1 << 20, '[')
                        << std::string(1 << 20, ']') << '}';
  }
}

[[noreturn]] void SleepForever() {
  for (;;) ::pause();
}

void SleepMs(int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Really uses memory, until the kernel kills us.
int Eat() {
  for (;;) {
    constexpr size_t kBytes = 8 << 20;
    void* block = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return 11;
    std::memset(block, 1, kBytes);
    SleepMs(5);
  }
}

int64_t Rank() {
  const char* rank = std::getenv("RANK");
  return rank == nullptr ? -1 : std::atoll(rank);
}

// For modes about one rank: that rank acts, the others run for ever.
[[noreturn]] void OnlyRank(int64_t rank, int (*act)()) {
  if (Rank() == rank) ::_exit(act());
  SleepForever();
}

std::string g_result;  // only for the mode with a signal handler
std::string g_text;

int Do(const std::string& mode, const std::string& value, const RunSpec& spec, const std::string& result_file) {
  const auto number = [&] { return std::atoll(value.c_str()); };
  RunResult result = OkResult(spec);
  if (mode == "ok") {
    Write(result_file, Text(result));
    return 0;
  }
  if (mode == "exit") return static_cast<int>(number());
  if (mode == "speed") {  // in tokens/s; the speed is also its version
    result = OkResult(spec, number());
    result.environment["version"] = value;
    Write(result_file, Text(result));
    return 0;
  }
  if (mode == "slow") {
    SleepMs(number());
    Write(result_file, Text(result));
    return 0;
  }
  if (mode == "takes") {  // bytes of an accelerator's memory that it uses
    result.memory.device_peak_bytes = number();
    Write(result_file, Text(result));
    return 0;
  }
  if (mode == "own") {  // its own figures after this many ms; waits while the disk is full
    SleepMs(number());
    result.loss.assign(2, 1000 + static_cast<double>(spec.seed));
    while (!TryToWrite(result_file, Text(result))) SleepMs(20);
    return 0;
  }
  if (mode == "segfault") {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
  }
  if (mode == "kill-self") ::raise(SIGKILL);
  if (mode == "sleep") SleepForever();
  if (mode == "ignore-term") {
    ::signal(SIGTERM, SIG_IGN);
    std::puts("ready");
    std::fflush(stdout);
    SleepForever();
  }
  if (mode == "preempted-on-term" || mode == "ok-on-term") {
    if (mode == "preempted-on-term") SetEnd(InfrastructureReason::kPreempted, result);
    g_result = result_file;
    g_text = Text(result);
    // Not async-signal-safe, but the process does nothing else.
    ::signal(SIGTERM, [](int) {
      Write(g_result, g_text);
      ::_exit(g_text.find("preempted") == std::string::npos ? 0 : 13);
    });
    std::puts("ready");
    std::fflush(stdout);
    SleepForever();
  }
  if (mode == "eat") return Eat();
  if (mode == "child-eats") {  // fails like a trainer whose worker was killed
    SleepMs(100);              // until exec has told the kernel which process to kill first
    const pid_t child = ::fork();
    if (child == 0) ::_exit(Eat());
    ::waitpid(child, nullptr, 0);
    return static_cast<int>(number());
  }
  if (mode == "rank-eats") OnlyRank(number(), [] { return Eat(); });
  if (mode == "rank-exits-11") OnlyRank(number(), [] { return 11; });
  if (mode == "rank-is-killed") OnlyRank(number(), [] { return ::raise(SIGKILL); });
  if (mode == "rank-lost") {  // rank 0 notices and reports it
    if (Rank() != 0) OnlyRank(number(), [] { return ::raise(SIGKILL); });
    SleepMs(50);
    result.status = RunStatus::kCrashed;
    result.message = "rank " + value + " on somewhere closed the connection";
    Write(result_file, Text(result));
    return 3;
  }
  if (mode == "eat-mib") {
    const auto bytes = static_cast<size_t>(number()) << 20;
    void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(block, 1, bytes);
    SleepForever();
  }
  // Reports after this many milliseconds that the ranks have met, then runs for ever.
  if (mode == "meets") {
    SleepMs(number());
    if (Rank() == 0) std::ofstream(std::getenv("RIDGELINE_PROGRESS")) << "0 5 0.0\n";
    SleepForever();
  }
  // The point with seed n does as many steps as the file VALUE.n has bytes, and ends well after its last step.
  if (mode == "steps-as-told") {
    const std::string told = value + "." + std::to_string(spec.seed);
    const int64_t steps = StepsOf(spec);
    for (int64_t said = -1;;) {
      std::error_code none;
      const auto bytes = std::filesystem::file_size(told, none);
      const int64_t done = none ? 0 : std::min(static_cast<int64_t>(bytes), steps);
      if (done != said) {
        const std::string line = std::to_string(done) + " " + std::to_string(steps) + " 1000.0 2.5\n";
        Write(std::getenv("RIDGELINE_PROGRESS"), line);
      }
      said = done;
      if (done == steps) break;
      SleepMs(20);
    }
    Write(result_file, Text(result));
    return 0;
  }
  if (mode == "meets-and-exits") {
    if (Rank() == 0) std::ofstream(std::getenv("RIDGELINE_PROGRESS")) << "0 5 0.0\n";
    SleepMs(300);
    return static_cast<int>(number());
  }
  // Fails like a trainer on a full disk. The disk stays full, or not. In both cases the exit code says nothing about
  // that.
  if (mode == "fill" || mode == "fill-and-free") {
    const std::string file = result_file + ".part";
    std::ofstream out(file);
    const std::string block(1 << 16, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
    std::fputs("OSError: [Errno 28] No space left on device\n", stderr);
    out.close();
    // Frees a part: less than a job needs, but enough to report it.
    if (mode == "fill-and-free") std::filesystem::resize_file(file, std::filesystem::file_size(file) - (4 << 20));
    return static_cast<int>(number());
  }
  if (mode == "remove-point" || mode == "remove-job") {
    const std::filesystem::path point = std::filesystem::path(result_file).parent_path();
    std::filesystem::remove_all(mode == "remove-point" ? point : point.parent_path().parent_path());
    return static_cast<int>(number());
  }
  if (mode == "prints") {  // prints the content of a file
    std::fputs(ReadFile(value).c_str(), stdout);
    std::fflush(stdout);
    return 1;
  }
  if (mode == "says") {  // the same, in its result
    result.status = RunStatus::kCrashed;
    result.message = ReadFile(value);
    Write(result_file, Text(result));
    return 3;
  }
  if (mode == "half-result") {
    std::ofstream(result_file) << Text(result).substr(0, 200);
    return 0;
  }
  if (mode == "not-a-result") {
    std::ofstream(result_file) << R"({"version": 1, "status": "splendid"})";
    return 0;
  }
  if (mode == "wrong-id") {
    result.point_id = std::string(32, 'f');
    Write(result_file, Text(result));
    return 0;
  }
  if (mode == "no-id") {
    result.point_id.clear();
    Write(result_file, Text(result));
    return 0;
  }
  if (mode == "result-is" || mode == "files-are") {
    const std::filesystem::path folder = std::filesystem::path(result_file).parent_path();
    if (mode == "files-are") {
      for (const char* name : {"progress", "log.txt"}) PutInPlace(value, folder / name);
    }
    PutInPlace(value, result_file);
    return 0;
  }
  if (mode == "writes") {  // writes this text as its result
    Write(result_file, value);
    return 0;
  }
  if (mode == "ok-but-exit") {
    Write(result_file, Text(result));
    return static_cast<int>(number());
  }
  if (mode == "status") {  // a failure that the trainer explains, with its exit code
    const auto reason = ReasonFromName(value);
    SetEnd(reason ? RunEnd(*reason) : EndFromNames(value, ""), result);
    result.message = "because";
    result.hint = "see there";
    result.evidence["wanted_bytes"] = "123456789";
    Write(result_file, Text(result));
    return static_cast<int>(ExitCodeOf(EndOf(result)));
  }
  if (mode == "not-finite") {
    result.status = RunStatus::kDiverged;
    result.loss.back() = NAN;
    Write(result_file, Text(result));
    return 12;
  }
  if (mode == "log") {
    const std::string line(99, 'x');
    for (int64_t written = 0; written < number(); written += 100) std::printf("%s\n", line.c_str());
    std::puts("\xff\xfe the last words");
    return 3;
  }
  if (mode == "grandchildren") {  // one in our group, and one that left the group; both run for ever
    if (::fork() == 0) SleepForever();
    if (::fork() == 0) {
      ::setsid();
      if (::fork() == 0) SleepForever();
      ::_exit(0);
    }
    if (!value.empty()) SleepForever();
    Write(result_file, Text(result));
    return 0;
  }
  if (mode == "environment") {
    for (const char* name :
         {"RIDGELINE_PROGRESS", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "RANK", "LOCAL_RANK",
          "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RIDGELINE_SECRET_FILE"}) {
      const char* there = std::getenv(name);
      std::printf("%s=%s\n", name, there == nullptr ? "" : there);
    }
    for (int fd = 3; fd < 64; ++fd) {
      if (::fcntl(fd, F_GETFD) >= 0) std::printf("open %d\n", fd);
    }
    cpu_set_t cores;
    CPU_ZERO(&cores);
    ::sched_getaffinity(0, sizeof cores, &cores);
    for (size_t core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &cores)) std::printf("core %zu\n", core);
    }
    std::fflush(stdout);
    if (Rank() == 0) Write(result_file, Text(result));
    return 0;
  }
  std::fprintf(stderr, "fake_trainer: no mode '%s'\n", mode.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const Invocation call = Read(argc, argv);
  const RunSpec spec = DecodeSpec(ReadJsonFile(call.spec), call.spec);
  std::string mode = call.modes.at(call.modes.size() == 1 ? 0 : static_cast<size_t>(spec.seed));
  if (mode.starts_with("as=")) mode = ReadFile(mode.substr(3));
  const size_t equals = mode.find('=');
  return Do(mode.substr(0, equals), equals == std::string::npos ? "" : mode.substr(equals + 1), spec, call.result);
}
