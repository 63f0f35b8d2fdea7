// Strikes sweeps at random moments, and checks what must hold afterwards for every launcher. A seed determines a round:
// which blows fall, and when. Plays $RIDGELINE_TORTURE_ROUNDS rounds. The first has seed $RIDGELINE_TORTURE_SEED, and
// each next one the next number.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/process.h"
#include "base/text.h"
#include "tests/base/eventually.h"
#include "tests/cluster/cluster_cli.h"
#include "tests/torture/faults.h"

namespace ridgeline::testing {

enum class Blow {
  kKillDriver,
  kKillHelper,  // the process that the driver started to talk to a cluster
  kKillExec,
  kKillKeeper,
  kKillTrainer,
  kKillEverything,
  kStop,  // one of these processes, for a while
  kFullDisk,
  kNoInodes,
  kReadOnlyDisk,
  kFailingDisk,
  kShortWrites,
  kNoProcesses,  // no process or thread starts
  kClockJump,
  kBeside,  // another command works on the same files
};

inline std::string_view NameOf(Blow blow) {
  constexpr std::string_view kNames[] = {"driver",       "helper",         "exec",          "keeper",
                                         "trainer",      "everything",     "stop",          "full disk",
                                         "no inodes",    "read-only disk", "failing disk",  "short writes",
                                         "no processes", "clock jump",     "command beside"};
  return kNames[static_cast<size_t>(blow)];
}

// Returns none for a process that has ended.
inline std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code ec;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", parent), ec)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  }
  return children;
}

// Puts faults into the programs that are started with Prefix(), only in files below `folder`.
class FaultyMachine {
 public:
  explicit FaultyMachine(const std::filesystem::path& folder) {
    const Fd file(::open(page().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::ftruncate(file.get(), sizeof(Faults)), 0);
    void* memory = ::mmap(nullptr, sizeof(Faults), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    faults_ = new (memory) Faults;
    folder.string().copy(faults_->folder, sizeof(faults_->folder) - 1);
  }
  FaultyMachine(const FaultyMachine&) = delete;
  FaultyMachine& operator=(const FaultyMachine&) = delete;
  ~FaultyMachine() { ::munmap(faults_, sizeof(Faults)); }

  Faults& faults() { return *faults_; }
  std::vector<std::string> Prefix() const {
    return {"/usr/bin/env", std::string("LD_PRELOAD=") + RIDGELINE_BINARY_DIR + "/tests/torture/faults.so",
            fmt::format("{}={}", kFaultsVariable, page().string())};
  }

 private:
  std::filesystem::path page() const { return dir_ / "faults"; }

  TempDir dir_;
  Faults* faults_;
};

// The parts of a round.
struct Tortured {
  ClusterCli& cli;
  std::filesystem::path sweep;  // with the fake trainer's mode `own`
  int64_t points;
  std::vector<Blow> blows;                        // blows that may fall
  std::function<std::vector<pid_t>()> processes;  // of its jobs, possibly with those of other jobs
  FaultyMachine* machine = nullptr;               // for faults
  std::filesystem::path disk = {};                // a small disk for kFullDisk and kNoInodes
  uint64_t most_wait_ms = 350;                    // before a blow, so that some blows fall after its jobs have begun
};

class Round {
 public:
  Round(Tortured tortured, uint64_t seed) : it_(std::move(tortured)), random_(seed) {}

  // Returns how often each blow struck something.
  std::map<std::string_view, int64_t> Play() {
    for (int i = 0; i < kBlows; ++i) {
      if (!driver_) {
        driver_.emplace(it_.cli.Start({"run", it_.sweep}));
        may_be_silent_ = false;
      }
      if (Waits(random_() % it_.most_wait_ms)) continue;  // the driver ended before the blow
      Strike(it_.blows[random_() % it_.blows.size()]);
    }
    if (driver_ && !Waits(kHangsNs / 1'000'000)) {
      driver_->Signal(SIGKILL);
      driver_->Wait();
      ADD_FAILURE() << "the driver hangs; " << Story();
    }
    Settle();
    if (it_.machine != nullptr) {
      hits_[NameOf(Blow::kFailingDisk)] = it_.machine->faults().failed;
      hits_[NameOf(Blow::kReadOnlyDisk)] = it_.machine->faults().refused;
      hits_[NameOf(Blow::kShortWrites)] = it_.machine->faults().cut;
      hits_[NameOf(Blow::kNoProcesses)] = it_.machine->faults().unstarted;
      hits_[NameOf(Blow::kClockJump)] = it_.machine->faults().misled;
    }
    return hits_;
  }

 private:
  static constexpr int kBlows = 7;
  static constexpr int64_t kHangsNs = 120'000'000'000;
  static constexpr int kTries = 6;  // each blow may have cost a point one of its retries

  // Returns whether the driver ended meanwhile.
  bool Waits(uint64_t ms) {
    const std::optional<ExitStatus> status = driver_->WaitFor(static_cast<int64_t>(ms) * 1'000'000);
    if (!status) return false;
    driver_.reset();
    const auto text = [&](const char* name) { return ReadFileIfThere(it_.cli.dir.path() / name).value_or(""); };
    ExpectToldWhy(*status, text("err"), text("out"));
    return true;
  }

  // Expects an exit code of ours, and words about the cause from a command that failed, unless its disk took none.
  void ExpectToldWhy(const ExitStatus& status, const std::string& err, const std::string& out) const {
    EXPECT_TRUE(status.signal == 0 && status.exit_code <= 3) << Describe(status) << "; " << Story() << "\n"
                                                             << err << out;
    EXPECT_EQ(err.find("internal error"), std::string::npos) << Story() << "\n" << err;
    EXPECT_TRUE(status.exit_code <= 1 || may_be_silent_ || !err.empty()) << "no word why; " << Story() << "\n" << out;
  }

  void Strike(Blow blow) {
    story_.emplace_back(NameOf(blow));
    may_be_silent_ = may_be_silent_ || blow == Blow::kFullDisk || blow == Blow::kNoInodes ||
                     blow == Blow::kReadOnlyDisk || blow == Blow::kFailingDisk;
    switch (blow) {
      case Blow::kKillDriver:
        return KillDriver();
      case Blow::kKillHelper:
        for (const pid_t pid : ChildrenOf(driver_->pid())) Kill(pid, blow);
        return;
      case Blow::kKillExec:
      case Blow::kKillKeeper:
      case Blow::kKillTrainer:
        return KillOneOf(blow);
      case Blow::kKillEverything:
        KillDriver();
        for (const pid_t pid : it_.processes()) {
          if (const auto part = WhatKills(pid)) Kill(pid, *part);
        }
        return;
      case Blow::kStop:
        return StopOne();
      case Blow::kNoInodes: {
        const auto folder = it_.disk / "inodes";
        std::filesystem::create_directory(folder);
        for (int i = 0; std::ofstream(folder / std::to_string(i)); ++i) {
        }
        ++hits_[NameOf(blow)];
        SomeTime();
        std::filesystem::remove_all(folder);
        return;
      }
      case Blow::kReadOnlyDisk:
        it_.machine->faults().read_only = true;
        SomeTime();
        it_.machine->faults().read_only = false;
        return;
      case Blow::kBeside:
        return RunBeside();
      case Blow::kFullDisk: {
        const auto ballast = it_.disk / "ballast";
        std::ofstream(ballast, std::ios::binary) << std::string(96 << 20, 'b');
        ++hits_[NameOf(blow)];
        SomeTime();
        std::filesystem::remove(ballast);
        return;
      }
      case Blow::kFailingDisk:
        it_.machine->faults().failing = 1 + random_() % 200;
        SomeTime();
        it_.machine->faults().failing = 0;
        return;
      case Blow::kShortWrites:
        it_.machine->faults().shortened = 500;
        SomeTime();
        it_.machine->faults().shortened = 0;
        return;
      case Blow::kNoProcesses:
        it_.machine->faults().not_starting = 200 + random_() % 801;
        SomeTime();
        it_.machine->faults().not_starting = 0;
        return;
      case Blow::kClockJump:
        // A node's clock may be off by this much. Beyond that, no point of its jobs begins.
        it_.machine->faults().clock_ahead_ns = (static_cast<int64_t>(random_() % 800) - 400) * 1'000'000'000;
        return;
    }
  }

  void SomeTime() {
    if (driver_) Waits(random_() % (2 * it_.most_wait_ms));
  }

  void KillDriver() {
    ++hits_[NameOf(Blow::kKillDriver)];
    driver_->Signal(SIGKILL);
    driver_->Wait();
    driver_.reset();
  }

  static std::vector<std::string> CommandOf(pid_t pid) {
    std::vector<std::string> words;
    const std::string text = CommandLineOf(pid);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\0', begin), text.size());
      words.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return words;
  }
  static std::optional<Blow> WhatKills(pid_t pid) {
    const auto command = CommandOf(pid);
    if (command.empty()) return std::nullopt;
    const std::string program = std::filesystem::path(command[0]).filename();
    if (program == "ridgeline-local-keeper") return Blow::kKillKeeper;
    if (program == "fake_trainer") return Blow::kKillTrainer;
    if (program == "ridgeline" && command.size() > 1 && command[1] == "exec") return Blow::kKillExec;
    return std::nullopt;
  }

  // Stops the driver, or a process of its jobs. It continues afterwards, whatever happened meanwhile.
  void StopOne() {
    std::vector<pid_t> victims = it_.processes();
    std::erase_if(victims, [](pid_t pid) { return !WhatKills(pid); });
    victims.push_back(driver_->pid());
    const pid_t victim = victims[random_() % victims.size()];
    if (::kill(victim, SIGSTOP) != 0) return;
    ++hits_[NameOf(Blow::kStop)];
    SomeTime();
    // If the process ended meanwhile, another may have its number. SIGCONT harms no process.
    ::kill(victim, SIGCONT);
  }

  // These commands never change what is measured, whatever the run is doing, and never hang. Their output
  // does not matter, because a run may keep them from its files.
  void RunBeside() {
    const auto at = [&](const char* name) { return (it_.cli.dir.path() / name).string(); };
    const std::vector<std::vector<std::string>> commands = {
        {"db", "check"},
        {"db", "merge", at("beside.db"), "--db", at("ridgeline.db")},
        {"db", "merge", at("ridgeline.db"), "--db", at("beside.db")},
        {"db", "prune", "--before", "2100-01-01"},
        {"report", "activation-checkpointing", "--to", at("beside.html")},
        {"status"},
        {"query", "SELECT count(*) FROM results"},
        {"collect", "ridgeline-out", "--db", at("beside.db")},
        {"serve", "--listen", "127.0.0.1:0"},
    };
    const std::vector<std::string>& command = commands[random_() % commands.size()];
    story_.back() += fmt::format(" ({})", fmt::join(command, " "));
    std::vector<std::string> argv = it_.cli.prefix;
    argv.push_back(cli::Program().string());
    argv.insert(argv.end(), command.begin(), command.end());
    SpawnOptions options;
    options.work_dir = it_.cli.dir.path();
    options.stdout_file = it_.cli.dir.path() / "beside.log";
    options.stderr_file = options.stdout_file;
    options.die_with_parent = true;
    std::filesystem::remove(options.stdout_file);
    Child beside = Child::Spawn(argv, options);
    if (command.front() == "serve") AskAndEnd(beside, options.stdout_file);
    if (!beside.WaitFor(kHangsNs)) {
      beside.Signal(SIGKILL);
      ADD_FAILURE() << "the command beside hangs; " << Story();
    }
    const ExitStatus status = beside.Wait();
    ExpectToldWhy(status, ReadFileIfThere(options.stdout_file).value_or(""), "");
    ++hits_[NameOf(Blow::kBeside)];
  }

  // Asks the server for pages. Each must have an answer, and the server must end when it is told to.
  void AskAndEnd(Child& server, const std::filesystem::path& said) {
    std::string text;
    const auto is_there = [&] {
      text = ReadFileIfThere(said).value_or("");
      return text.find("Ctrl-C") != std::string::npos || server.Poll();
    };
    if (!Eventually(is_there) || server.Poll()) return;
    const size_t begin = text.find("http://");
    for (const char* page : {"metrics", "status", "healthz"}) {
      const Captured asked = ::ridgeline::Run({"/usr/bin/curl", "-s", "-o", "/dev/null", "--max-time", "60",
                                               text.substr(begin, text.find(' ', begin) - begin) + page});
      EXPECT_EQ(asked.status.exit_code, 0) << page << " has no answer; " << Story() << "\n" << text;
    }
    server.Signal(SIGTERM);
  }

  void KillOneOf(Blow blow) {
    std::vector<pid_t> victims = it_.processes();
    std::erase_if(victims, [&](pid_t pid) { return WhatKills(pid) != blow; });
    if (!victims.empty()) Kill(victims[random_() % victims.size()], blow);
  }
  void Kill(pid_t pid, Blow blow) {
    if (::kill(pid, SIGKILL) != 0) return;
    ++hits_[NameOf(blow)];
    if (blow != Blow::kKillHelper) ++kills_;
  }

  // No blow falls any more. Points without a valid result are measured again.
  void Settle() {
    std::string said;
    for (int i = 0; i < kTries; ++i) {
      Child last = it_.cli.Start({"run", it_.sweep});
      if (!last.WaitFor(kHangsNs)) {
        last.Signal(SIGKILL);
        last.Wait();
        ADD_FAILURE() << "`ridgeline run` hangs when all is well again; " << Story();
        return;
      }
      const auto output = it_.cli.Finish(last);
      said = output.out + output.err;
      if (output.status.exit_code <= 1 && output.status.signal == 0) break;
    }
    const int64_t not_ok = it_.cli.Count("SELECT count(*) FROM latest WHERE status <> 'ok'");
    it_.cli.ExpectOneFinalResultEach(it_.points, it_.points - not_ok);
    EXPECT_LE(not_ok, kills_) << "more points ended badly than their processes were killed\n" << it_.cli.NotOk();
    // A pod that is taken away may take its log along. Then only the headline of its results is left.
    EXPECT_EQ(
        it_.cli.Cell(
            "SELECT coalesce(group_concat(printf('%s #%d: %s %s', point_id, attempt, loss, evidence), char(10)), '') "
            "FROM results JOIN points ON points.id = point_id WHERE status = 'ok' AND (loss ->> '$[0]' <> 1000 + seed "
            "OR json_array_length(loss) <> CASE WHEN evidence ->> '$.headline_only' IS NULL THEN 2 ELSE 0 END)"),
        "")
        << "results whose figures are another point's, or not whole";
    if (::testing::Test::HasFailure()) ADD_FAILURE() << Story() << "\nat last it said:\n" << said << it_.cli.NotOk();
  }

  std::string Story() const { return fmt::format("struck were: {}", fmt::join(story_, ", ")); }

  Tortured it_;
  std::mt19937_64 random_;
  std::optional<Child> driver_;
  std::vector<std::string> story_;
  bool may_be_silent_ = false;  // whether a full or read-only disk may have lost the driver's or a command's messages
  int64_t kills_ = 0;           // kills that may have made a point end badly
  std::map<std::string_view, int64_t> hits_;
};

inline uint64_t NumberIn(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

// Plays rounds until one goes wrong. `round` plays the round with a seed.
inline void Torture(std::string_view launcher,
                    const std::function<std::map<std::string_view, int64_t>(uint64_t seed)>& round) {
  const uint64_t first = NumberIn("RIDGELINE_TORTURE_SEED", 1);
  const uint64_t rounds = NumberIn("RIDGELINE_TORTURE_ROUNDS", 4);
  std::cout << fmt::format("{} rounds from seed {} on\n", rounds, first);
  std::map<std::string_view, int64_t> hits;
  for (uint64_t seed = first; seed < first + rounds; ++seed) {
    for (const auto& [blow, count] : round(seed)) hits[blow] += count;
    if (!::testing::Test::HasFailure()) continue;
    std::cout << fmt::format("round {} went wrong; once more: make torture LAUNCHER={} ROUNDS=1 SEED={}\n",
                             seed - first + 1, launcher, seed);
    return;
  }
  int64_t all = 0;
  for (const auto& [blow, count] : hits) {
    std::cout << fmt::format("{}: {}\n", blow, count);
    all += count;
  }
  EXPECT_GE(all, static_cast<int64_t>(rounds)) << "blows fell where nothing was";
}

}  // namespace ridgeline::testing
