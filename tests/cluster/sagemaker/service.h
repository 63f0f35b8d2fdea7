// A double of SageMaker (sagemaker-double), and sweeps that run on it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "tests/cluster/cluster_cli.h"

namespace ridgeline::testing {

inline constexpr const char* kSageMakerImage = "123456789012.dkr.ecr.us-west-2.amazonaws.com/worker@sha256:aa";
// Without an entry point, so that `docker run IMAGE train` starts plugins/sagemaker/deploy/train.
inline constexpr const char* kSageMakerTrainImage = "123456789012.dkr.ecr.us-west-2.amazonaws.com/worker@sha256:bb";
inline constexpr const char* kSageMakerRole = "arn:aws:iam::123456789012:role/SageMaker";

// Returns why the double cannot run here; empty if it can.
inline std::string WhyNoSageMaker() {
  if (::geteuid() != 0) return "the double of SageMaker needs root, for its containers' namespaces";
  const Captured asked = ridgeline::Run({"/usr/bin/python3", "-c", "import botocore"});
  return asked.status.ok() ? "" : "there is no python3-botocore (packages.txt)";
}

// The service, which ends with this object.
class SageMaker {
 public:
  // `key`: "ID:SECRET[:TOKEN]". `program`: what the image starts.
  explicit SageMaker(const std::vector<std::string>& more = {}) {
    const Json images = {
        {kSageMakerImage,
         {{"entrypoint", {"ridgeline"}}, {"environment", {{"PATH", RIDGELINE_BINARY_DIR "/bin:/usr/bin:/bin"}}}}},
        {kSageMakerTrainImage,
         {{"entrypoint", Json::array()},
          {"environment",
           {{"PATH", RIDGELINE_SOURCE_DIR "/plugins/sagemaker/deploy:" RIDGELINE_BINARY_DIR "/bin:/usr/bin:/bin"}}}}}};
    WriteFile(dir_ / "images.json", DumpJson(images));
    std::vector<std::string> argv = {RIDGELINE_SOURCE_DIR "/tests/cluster/sagemaker/sagemaker-double",
                                     "--root",
                                     dir_ / "root",
                                     "--images",
                                     dir_ / "images.json",
                                     "--port-file",
                                     dir_ / "port",
                                     "--role",
                                     kSageMakerRole,
                                     "--with-parent"};
    argv.insert(argv.end(), more.begin(), more.end());
    SpawnOptions options;
    options.stdout_file = options.stderr_file = dir_ / "said";
    options.new_process_group = true;
    options.die_with_parent = true;
    process_ = Child::Spawn(argv, options);
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(dir_ / "port"); })) << Said();
    port_ = ReadFile(dir_ / "port");
    Tell({{"buckets", {"bench"}}, {"start_s", 0.05}, {"restart_s", 0.05}});
    for (const auto& [name, value] : Environment()) ::setenv(name.c_str(), value.c_str(), 1);
  }
  SageMaker(const SageMaker&) = delete;
  SageMaker& operator=(const SageMaker&) = delete;
  ~SageMaker() {
    process_->Signal(SIGTERM);
    process_->Wait();
    EXPECT_THAT(Said(), ::testing::Not(::testing::HasSubstr("does not allow"))) << "the double's own answers";
  }

  std::map<std::string, std::string> Environment() const {
    return {{"AWS_ENDPOINT_URL", "http://127.0.0.1:" + port_},
            {"AWS_DEFAULT_REGION", "us-west-2"},
            {"AWS_ACCESS_KEY_ID", "AKIDOUBLE"},
            {"AWS_SECRET_ACCESS_KEY", "secret"},
            {"AWS_CONFIG_FILE", "/dev/null"},
            {"AWS_SHARED_CREDENTIALS_FILE", "/dev/null"}};
  }

  // Controls the double (the words are in sagemaker-double), and returns its jobs with their states, and its objects.
  Json Tell(const Json& wish) const {
    const std::string body = DumpJson(wish);
    const std::string request =
        fmt::format("POST /_double HTTP/1.0\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(port_)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string reply;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::send(fd, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size())) {
      char part[4096];
      for (ssize_t n = 0; (n = ::recv(fd, part, sizeof part, 0)) > 0;) reply.append(part, static_cast<size_t>(n));
    }
    ::close(fd);
    const size_t end = reply.find("\r\n\r\n");
    EXPECT_NE(reply.find(" 200 "), std::string::npos) << reply << Said();
    return end == std::string::npos ? Json::object() : ParseJson(reply.substr(end + 4), "the double");
  }
  Json Jobs() const { return Tell(Json::object()).at("jobs"); }
  // The keys of all that the bucket has.
  std::vector<std::string> Keys() const {
    return Tell(Json::object()).at("/objects/bench"_json_pointer).get<std::vector<std::string>>();
  }
  // How often each operation was called: "sagemaker:CreateTrainingJob".
  std::map<std::string, int> Calls() const {
    std::map<std::string, int> calls;
    std::istringstream in(ReadFile(dir_ / "root/requests.jsonl"));
    for (std::string line; std::getline(in, line);) ++calls[ParseJson(line, "a request").at("op").get<std::string>()];
    return calls;
  }
  std::string Said() const { return ReadFileIfThere(dir_ / "said").value_or(""); }
  const std::filesystem::path& dir() const { return dir_.path(); }

 private:
  TempDir dir_;
  std::optional<Child> process_;
  std::string port_;
};

// `launch: sagemaker:` with what every job needs.
inline Json SageMakerSettings(const Json& more = Json::object()) {
  Json settings = {{"role", kSageMakerRole},
                   {"image", kSageMakerImage},
                   {"instance_type", "ml.m5.large"},
                   {"output", "s3://bench/sweeps"},
                   {"poll_pause", "1s"}};
  settings.update(more);
  return settings;
}

// The real `ridgeline` with a service of its own.
class SageMakerCli : public ClusterCli {
 public:
  explicit SageMakerCli(const std::vector<std::string>& more = {}) : service(more) {}

  std::filesystem::path WriteReal(const std::string& matrix, const Json& settings = Json::object(),
                                  const std::string& more = "", int steps = 3) const {
    std::string text = DumpJson(SageMakerSettings(settings));
    return WriteTiny("sagemaker", text.substr(1, text.size() - 2), matrix, more, steps);
  }

  SageMaker service;

 protected:
  void ExpectNothingOnTheCluster() override {
    const Json jobs = service.Jobs();
    for (const auto& [name, state] : jobs.items()) {
      EXPECT_THAT(state.at(0).get<std::string>(), ::testing::AnyOf("Completed", "Failed", "Stopped")) << name;
    }
  }
};

// Sweeps of the fake trainer on a service of their own.
class SageMakerSweep : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoSageMaker(); !why.empty()) GTEST_SKIP() << why;
  }

  // A sweep of the fake trainer, whose starts are counted. `launch`: more of `launch:`.
  static std::filesystem::path Write(const SageMakerCli& cli, int points, const std::string& mode,
                                     const Json& settings = Json::object(), const std::string& launch = "") {
    std::string seeds;
    for (int seed = 1; seed <= points; ++seed) seeds += (seed > 1 ? ", " : "") + std::to_string(seed);
    const std::string script = fmt::format("echo start >>{}/starts; exec {} \"$@\"", cli.dir.path().string(),
                                           FakeProgram("fake_trainer").string());
    return cli.WriteText(fmt::format(
        "name: my sweep\ndefaults: {{model: llama-5m, seq_length: 64}}\nmatrix: {{seed: [{}]}}\n"
        "launch:\n  launcher: sagemaker\n  cpus: 1\n  time_limit: 5m\n  trainer: [/bin/sh, -c, {}, fake, {}]\n"
        "  sagemaker: {}\n  {}\n",
        seeds, DumpJson(script), mode, DumpJson(SageMakerSettings(settings)), launch));
  }
  // A job's name in the service that has this state.
  static std::string WaitForJob(const SageMakerCli& cli, const std::string& secondary) {
    std::string found;
    EXPECT_TRUE(Eventually([&] {
      const Json jobs = cli.service.Jobs();
      for (const auto& [name, state] : jobs.items()) {
        if (state.at(1) == secondary) found = name;
      }
      return !found.empty();
    })) << secondary;
    return found;
  }
};

}  // namespace ridgeline::testing
