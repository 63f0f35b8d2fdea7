// The SageMaker launcher without a service: signatures, credentials, settings, requests, answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sagemaker/aws.h"
#include "sagemaker/config.h"
#include "sagemaker/credentials.h"
#include "sagemaker/describe.h"
#include "sagemaker/judge.h"
#include "sagemaker/logs.h"
#include "sagemaker/output.h"
#include "sagemaker/parse.h"
#include "sagemaker/request.h"
#include "sagemaker/session.h"
#include "sagemaker/signature.h"
#include "sagemaker/submit.h"
#include "sweep/sweep.h"
#include "tests/base/temp_dir.h"
#include "tests/plugins/manual_clock.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Failure;
using plugin::Json;
using ::testing::HasSubstr;
using ::testing::Not;

// The example of AWS's documentation of Signature Version 4.
TEST(SageMakerSignature, IsThatOfTheDocumentation) {
  const ToSign request = {"GET",
                          "iam.amazonaws.com",
                          "/",
                          {{"Version", "2010-05-08"}, {"Action", "ListUsers"}},
                          {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}},
                          ""};
  const auto headers = Sign(request, {"iam", "us-east-1"},
                            {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "", 0}, 1440938160);
  EXPECT_EQ(headers.at("authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
            "SignedHeaders=content-type;host;x-amz-date, "
            "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
  EXPECT_EQ(headers.at("x-amz-date"), "20150830T123600Z");
}

TEST(SageMakerCredentials, AreThePlainKeysOfAProfile) {
  const char* const text =
      "[default]\naws_access_key_id = A\naws_secret_access_key=B\n"
      "[profile run]\n# a comment\nregion = eu-west-1\ns3 =\n  region = no\naws_access_key_id = C\n"
      "aws_secret_access_key = D\naws_session_token = E\n[profile other]\nrole_arn = x\naws_access_key_id = F\n"
      "aws_secret_access_key = G\n";
  EXPECT_EQ(KeysOfProfile(text, "default")->secret, "B");
  EXPECT_EQ(KeysOfProfile(text, "profile run")->token, "E");
  EXPECT_EQ(ValueOfProfile(text, "profile run", "region"), "eu-west-1");
  EXPECT_FALSE(KeysOfProfile(text, "profile other")) << "its role comes first";
  EXPECT_FALSE(KeysOfProfile(text, "nobody"));
}

TEST(SageMakerCredentials, ExpireAtTheTimeThatAwsNames) {
  const Credentials found = ParseExported(
      R"({"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "B", "SessionToken": "C",
          "Expiration": "2026-11-30T10:00:00+00:00"})");
  EXPECT_EQ(found.expires_unix_s, 1796032800);
  try {
    ParseExported("{\"SecretAccessKey\": \"hidden\", ");
    FAIL();
  } catch (const Failure& e) {
    EXPECT_THAT(e.message() + e.hint(), Not(HasSubstr("hidden")));
  }
}

Json Settings(const Json& more = Json::object()) {
  Json settings = {{"role", "arn:aws:iam::123456789012:role/SageMaker"},
                   {"image", "123456789012.dkr.ecr.us-west-2.amazonaws.com/worker@sha256:aa"},
                   {"instance_type", "ml.m5.large"},
                   {"output", "s3://bench/sweeps/"}};
  settings.update(more);
  return {{"sagemaker", settings}};
}

std::string Refusal(const Json& more) {
  try {
    ReadOptions(Settings(more));
  } catch (const Failure& e) {
    return e.message();
  }
  return "";
}

TEST(SageMakerSettings, AreRefusedByName) {
  const std::pair<Json, const char*> refused[] = {
      {{{"role", "admin"}}, "sagemaker: role is \"admin\""},
      {{{"image", "a b"}}, "sagemaker: image"},
      {{{"instance_type", "p6"}}, "sagemaker: instance_type"},
      {{{"output", "s3://bench/a b"}}, "sagemaker: output"},
      {{{"output", "/tmp"}}, "sagemaker: output"},
      {{{"training_plan", "mine"}}, "sagemaker: training_plan"},
      {{{"max_wait", "1h"}}, "max_wait is of spot instances alone"},
      {{{"spot", true}, {"max_wait", "1h"}, {"max_run", "2h"}}, "max_wait is 3600 s, less than max_run, 7200 s"},
      {{{"spot", true}, {"training_plan", "arn:aws:sagemaker:us-west-2:123456789012:training-plan/mine"}},
       "sagemaker: spot is true, which excludes training_plan"},
      {{{"subnets", {"subnet-0a"}}}, "sagemaker: subnets is given without security_group_ids"},
      {{{"keep_alive", "7h"}}, "sagemaker: keep_alive"},
      {{{"tags", {{"a", "x,y"}}}}, "sagemaker: tags: a"},
      {{{"env", {{"A-B", "x"}}}}, "sagemaker: env: A-B"},
      {{{"env", {{"RIDGELINE_NNODES", "2"}}}}, "sagemaker: env: RIDGELINE_NNODES"},
      {{{"env", {{"A", std::string(513, 'x')}}}}, "sagemaker: env: A"},
      {{{"request", {{"RetryStrategy", {{"MaximumRetryAttempts", 3}}}}}}, "sagemaker: request"},
      {{{"colour", "red"}}, "there is no setting 'colour'"}};
  for (const auto& [more, message] : refused) EXPECT_THAT(Refusal(more), HasSubstr(message)) << more;
  EXPECT_EQ(Refusal(Json::object()), "");
}

Json JobOf(const Json& more = Json::object()) {
  Json job = {{"key", "rl-0123456789abcdef"},
              {"sweep", "a sweep; of `mine`, which has a long name"},
              {"job_file", "/here/job.json"},
              {"job_dir", "/here"},
              {"nodes", 1},
              {"time_limit_s", 600},
              {"exec", {"/here/ridgeline", "exec", "/here/job.json"}}};
  job.update(more);
  return job;
}

TrainingJob Made(const Json& more = Json::object(), const Json& job = JobOf()) {
  const Options session = ReadOptions(Settings(more));
  return MakeTrainingJob(job, "{}", OptionsOf(job, session));
}

TEST(SageMakerRequest, StartsExecAndNothingElse) {
  const TrainingJob made = Made();
  EXPECT_EQ(made.name, "a-sweep--of--mine---whic-rl-0123456789abcdef");
  EXPECT_EQ(made.prefix, "a-sweep--of--mine---whic-rl-");
  EXPECT_EQ(made.job_file_uri, "s3://bench/sweeps/" + made.name + "/job/job.json");
  EXPECT_EQ(made.request.at("/AlgorithmSpecification/ContainerEntrypoint"_json_pointer).dump(),
            R"(["ridgeline","exec","--print-results","--lines","/opt/ml/checkpoints","--lines","/opt/ml/output/data",)"
            R"("--job-dir","/opt/ml/checkpoints/job","/opt/ml/input/data/job/job.json"])");
  EXPECT_EQ(made.request.at("/ProfilerConfig/DisableProfiler"_json_pointer), true);
  EXPECT_EQ(made.request.at("/StoppingCondition/MaxRuntimeInSeconds"_json_pointer), 2400);
  EXPECT_FALSE(made.request.contains("RetryStrategy"));
  EXPECT_EQ(made.request.at("/Environment/RIDGELINE_JOB_HASH"_json_pointer), made.hash);
  EXPECT_EQ(Made().hash, made.hash);
  EXPECT_NE(Made({{"instance_type", "ml.m5.xlarge"}}).hash, made.hash);
}

TEST(SageMakerRequest, NamesTheNodesSecretByAFile) {
  const TrainingJob made = Made({{"nodes", 2}});
  EXPECT_EQ(made.request.at("/ResourceConfig/InstanceCount"_json_pointer), 2);
  EXPECT_EQ(made.request.at("/Environment/RIDGELINE_SECRET_FILE"_json_pointer), "/opt/ml/input/data/job/ranks.secret");
}

TEST(SageMakerRequest, TakesWhatItWasTold) {
  const TrainingJob made = Made({{"instance_type", "ml.p6-b200.48xlarge"},
                                 {"spot", true},
                                 {"max_wait", "2h"},
                                 {"tags", {{"team", "ml"}}},
                                 {"request", {{"EnableNetworkIsolation", true}}}});
  EXPECT_FALSE(made.request.at("ResourceConfig").contains("VolumeSizeInGB")) << "it has disks of its own";
  EXPECT_EQ(made.request.at("/StoppingCondition/MaxWaitTimeInSeconds"_json_pointer), 7200);
  EXPECT_EQ(made.request.at("Tags").dump(), R"([{"Key":"team","Value":"ml"}])");
  EXPECT_EQ(made.request.at("EnableNetworkIsolation"), true);
  EXPECT_THROW(Made({{"spot", true}, {"max_wait", "10m"}}), Failure) << "the points may take longer";
  EXPECT_THROW(Made(Json::object(), JobOf({{"exec", {"a", std::string(300, 'x')}}})), Failure);
}

TEST(SageMakerRequest, HasANameForEverySweepAndKey) {
  for (const char* sweep : {"", "---", "ä", "x", "a_very_long_name_of_a_sweep_that_goes_on_and_on"}) {
    const TrainingJob made = Made(Json::object(), JobOf({{"sweep", sweep}, {"key", "rl-" + std::string(47, 'a')}}));
    EXPECT_LE(made.name.size(), 63U);
    EXPECT_THAT(made.name, ::testing::MatchesRegex("[a-zA-Z0-9](-*[a-zA-Z0-9])*"));
  }
}

plugin::JobState StateOf(const Json& more, const Record& record = {}) {
  Json document = {{"TrainingJobName", "x"},
                   {"TrainingJobStatus", "Failed"},
                   {"SecondaryStatus", "Failed"},
                   {"TrainingStartTime", 1000},
                   {"TrainingEndTime", 1100.5}};
  document.update(more);
  return Judge(record, ParseJob(document));
}

TEST(SageMakerEnd, IsTheDoingOfWhoeverFailureReasonNames) {
  struct Case {
    const char *failure, *end, *reason;
  };
  for (const auto& [failure, end, reason] :
       {Case{"AlgorithmError: no trainer, exit code: 4", "infrastructure", "start"},
        Case{"AlgorithmError: the disk is full, exit code: 3", "infrastructure", "storage"},
        Case{"AlgorithmError: , exit code: 1", "", ""}, Case{"AlgorithmError: , exit code: 137", "", ""},
        Case{"InternalServerError: please retry", "infrastructure", "node"},
        Case{"CapacityError: unable to provision", "infrastructure", "start"},
        Case{"ClientError: cannot pull the image", "infrastructure", "image"},
        Case{"ClientError: no S3 objects under s3://x", "infrastructure", "storage"},
        Case{"Something new", "infrastructure", "node"}}) {
    auto evidence = StateOf({{"FailureReason", failure}}).evidence;
    EXPECT_EQ(evidence["end"], end) << failure;
    EXPECT_EQ(evidence["reason"], reason) << failure;
    EXPECT_EQ(evidence["failure_reason"], failure);
  }
  auto evidence = StateOf({{"FailureReason", "AlgorithmError: x, exit code: 12"}}).evidence;
  EXPECT_EQ(evidence["exit_code"], "12");
}

TEST(SageMakerEnd, SaysWhoStoppedAJob) {
  Record record;
  record.points = {"a"};
  const auto end = [&](const char* secondary, Json more = Json::object()) {
    more.update({{"TrainingJobStatus", "Stopped"}, {"SecondaryStatus", secondary}});
    auto evidence = StateOf(more, record).evidence;
    return evidence["end"] + " " + evidence["reason"];
  };
  EXPECT_EQ(end("Stopped"), "cancelled ");
  EXPECT_EQ(end("MaxRuntimeExceeded"), "timeout ");
  const Json interrupted = Json::array({{{"Status", "Interrupted"}, {"StartTime", 5}, {"StatusMessage", "spot"}}});
  EXPECT_EQ(end("MaxRuntimeExceeded", {{"SecondaryStatusTransitions", interrupted}}), "infrastructure preempted");
  EXPECT_EQ(end("MaxWaitTimeExceeded"), "infrastructure preempted");
  EXPECT_EQ(end("Interrupted"), "infrastructure preempted");
  record.points = {"a", "b"};
  EXPECT_EQ(end("MaxRuntimeExceeded"), "infrastructure start") << "which of the points took the time is not known";
  record.cancelled = true;
  EXPECT_EQ(end("MaxRuntimeExceeded"), "cancelled ");
}

TEST(SageMakerEnd, SaysWhatItCost) {
  const Json ended = {
      {"TrainingJobStatus", "Completed"},  {"SecondaryStatus", "Completed"}, {"ResourceConfig", {{"InstanceCount", 1}}},
      {"EnableManagedSpotTraining", true}, {"TrainingTimeInSeconds", 200},   {"BillableTimeInSeconds", 50}};
  auto evidence = StateOf(ended).evidence;
  EXPECT_EQ(evidence["billable_s"], "50");
  EXPECT_EQ(evidence["spot_savings_percent"], "75");
  EXPECT_EQ(evidence["billed_nodes"] + " " + evidence["billed_s"] + " " + evidence["used_s"], "1 50 200");
  Json kept = ended;
  kept["ResourceConfig"] = {{"InstanceType", "ml.m5.large"}, {"InstanceCount", 2}, {"KeepAlivePeriodInSeconds", 600}};
  kept["WarmPoolStatus"] = {{"Status", "Available"}, {"ResourceRetainedBillableTimeInSeconds", 100}};
  evidence = StateOf(kept).evidence;
  EXPECT_EQ(evidence["billed_nodes"] + " " + evidence["billed_s"] + " " + evidence["may_bill_s"], "2 150 500");
  kept["WarmPoolStatus"]["Status"] = "Reused";
  EXPECT_FALSE(StateOf(kept).evidence.contains("may_bill_s"));
  kept["ResourceConfig"]["TrainingPlanArn"] = "arn:…";
  EXPECT_FALSE(StateOf(kept).evidence.contains("billed_s")) << "the plan is paid";
  Json never = ended;
  never["TrainingStartTime"] = nullptr;
  EXPECT_EQ(StateOf(never).evidence["billed_s"], "0");
  Json silent = ended;
  silent.erase("BillableTimeInSeconds");
  EXPECT_FALSE(StateOf(silent).evidence.contains("billed_s")) << "no figure is better than a wrong one";
  Json groups = ended;
  groups["ResourceConfig"].erase("InstanceCount");
  EXPECT_FALSE(StateOf(groups).evidence.contains("billed_s")) << "groups of instances have a price each";
  EXPECT_EQ(evidence["exit_code"], "0");
}

TEST(SageMakerSettings, TakesTheShippedSweep) {
  const sweep::Sweep sweep = sweep::LoadSweep(RIDGELINE_SOURCE_DIR "/sweeps/sagemaker.yaml");
  const Options options = ReadOptions(sweep.launch.config);
  CheckComplete(options);
  EXPECT_TRUE(options.spot);
  EXPECT_FALSE(MakeTrainingJob(JobOf(), "{}", OptionsOf(JobOf(), options)).request.contains("RetryStrategy"));
}

TEST(SageMakerDescription, SaysWhatAJobIsBilledAtMost) {
  plugin::JobToDescribe job;
  job.own = Settings().at("sagemaker");
  job.time_limit_s = 600;
  job.nodes = 2;
  EXPECT_EQ(DescribeJob(job).billed->nodes, 2);
  EXPECT_EQ(DescribeJob(job).billed->most_s, 600 + 1800 + 900);
  job.own["keep_alive"] = "10m";
  job.own["request"] = {{"ResourceConfig", {{"InstanceCount", 3}}},
                        {"StoppingCondition", {{"MaxRuntimeInSeconds", 7200}}}};
  EXPECT_EQ(DescribeJob(job).billed->nodes, 3);
  EXPECT_EQ(DescribeJob(job).billed->most_s, 7200 + 600 + 900);
  job.own["request"] = {{"ResourceConfig", {{"InstanceGroups", Json::array()}}}};
  EXPECT_FALSE(DescribeJob(job).billed) << "groups have a price each";
  job.own["request"] = {{"StoppingCondition", nullptr}};
  EXPECT_FALSE(DescribeJob(job).billed) << "nothing ends it";
  job.own.erase("request");
  job.own["training_plan"] = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/mine";
  EXPECT_FALSE(DescribeJob(job).billed);
  job.own = {{"keep_alive", "for ever"}};
  EXPECT_FALSE(DescribeJob(job).billed) << "open refuses it";
}

TEST(SageMakerState, SaysWhyAJobWaits) {
  const Json waits = {{"TrainingJobStatus", "InProgress"},
                      {"SecondaryStatus", "Starting"},
                      {"SecondaryStatusTransitions",
                       Json::array({{{"Status", "Starting"}, {"StatusMessage", "Insufficient capacity, retrying"}}})}};
  const plugin::JobState state = StateOf(waits);
  EXPECT_EQ(state.phase, plugin::Phase::kQueued);
  EXPECT_THAT(state.evidence.at("waits"), HasSubstr("Insufficient capacity"));
  EXPECT_EQ(StateOf({{"TrainingJobStatus", "InProgress"}, {"SecondaryStatus", "A new one"}}).phase,
            plugin::Phase::kQueued)
      << "the job is waited for";
}

std::string Gzip(const std::string& text) {
  std::string packed(text.size() + 1000, '\0');
  z_stream stream{};
  ::deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

std::string TarEntry(const std::string& name, const std::string& text, char type = '0') {
  std::string head(512, '\0');
  head.replace(0, name.size(), name);
  const std::string size = fmt::format("{:011o}", text.size());
  head.replace(124, size.size(), size);
  head[156] = type;
  std::string body = text;
  body.resize((text.size() + 511) / 512 * 512);
  return head + body;
}

TEST(SageMakerOutput, IsReadFromAnArchive) {
  const std::string archive = TarEntry("other.txt", "no") + TarEntry("lines.node0.log", "one\n") +
                              TarEntry("x/lines.node1.log", "two\n") + TarEntry("lines.node2.log", "", '2') +
                              std::string(1024, '\0');
  EXPECT_EQ(LinesOfArchive(Gzip(archive)), "one\ntwo\n");
  EXPECT_THROW(LinesOfArchive("nonsense"), Failure);
  const std::string packed = Gzip(archive);
  EXPECT_THROW(LinesOfArchive(packed.substr(0, packed.size() / 2)), Failure);
  EXPECT_THROW(LinesOfArchive(Gzip(TarEntry("lines.node0.log", "text").substr(0, 514))), Failure);
}

// Answers from a list, and keeps what was sent.
class ScriptedHttp final : public Http {
 public:
  HttpResponse Send(const HttpRequest& request) override {
    sent.push_back(request);
    if (answers.empty()) return {0, "", "nobody answers", 0, ""};
    HttpResponse answer = answers.front();
    answers.pop_front();
    return answer;
  }
  std::deque<HttpResponse> answers;
  std::vector<HttpRequest> sent;
};

class SageMakerCalls : public ::testing::Test {
 protected:
  SageMakerCalls() {
    auto http = std::make_unique<ScriptedHttp>();
    http_ = http.get();
    Aws::Settings settings;
    settings.region = "us-west-2";
    settings.find_credentials = [this] {
      ++logins_;
      return Credentials{"A", "B", "", 0};
    };
    settings.variable = [this](const std::string& name) { return variables_[name]; };
    settings.sleep = [this](std::chrono::milliseconds pause) {
      paused_ += pause;
      clock_.Later(std::chrono::seconds(1));
    };
    aws_ = std::make_unique<Aws>(std::move(http), clock_, settings);
  }
  void Answers(int64_t code, const std::string& body, int64_t date_unix_s = 0, const std::string& etag = "") {
    http_->answers.push_back({code, body, "", date_unix_s, "", etag});
  }
  // The kind of the failure with which a call ends if the service goes on to answer so.
  std::optional<Failure::Kind> KindAfter(const std::string& body, const std::function<void()>& call) {
    http_->answers.assign(100, {200, body, "", 0, "", ""});
    std::optional<Failure::Kind> kind;
    try {
      call();
    } catch (const Failure& e) {
      kind = e.kind();
    }
    http_->answers.clear();
    return kind;
  }
  Answer Call() { return aws_->Call("sagemaker:ListTrainingJobs", Json::object()); }

  testing::ManualClock clock_;
  ScriptedHttp* http_ = nullptr;
  std::unique_ptr<Aws> aws_;
  std::map<std::string, std::string> variables_;
  std::chrono::milliseconds paused_{};
  int logins_ = 0;
};

TEST_F(SageMakerCalls, GoToTheRegion) {
  Answers(200, "{}");
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(http_->sent.front().url, "https://api.sagemaker.us-west-2.amazonaws.com/");
  EXPECT_EQ(http_->sent.front().headers.at("x-amz-target"), "SageMaker.ListTrainingJobs");
}

TEST_F(SageMakerCalls, AreRepeatedAfterFailuresThatPass) {
  Answers(400, R"({"__type": "ThrottlingException", "Message": "Rate exceeded"})");
  Answers(503, "<html>");
  Answers(200, "<html>sign in</html>");
  Answers(200, "{\"half\": ");
  Answers(200, "{}");
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(http_->sent.size(), 5U);
  EXPECT_GT(paused_.count(), 0);
}

// Whatever the answer to whichever call is, if it is none of AWS's, it is asked for again, and no fault of ours.
TEST_F(SageMakerCalls, TakeNoAnswerOfAnotherForm) {
  const auto rows = [&] { aws_->Call("sagemaker:ListTrainingJobs", {}, [](const Json& d) { ParseRows(d); }); };
  const auto job = [&] { Describe(*aws_, "x"); };
  const auto log = [&] { SweepLog("a-rl-", 0).Read(*aws_, [](const std::string&, const std::string&) {}); };
  const auto list = [&] { aws_->List({"bench", "p/"}, 10); };
  const auto get = [&] { aws_->Get({"bench", "p/a"}); };
  const auto put = [&] { aws_->Put({"bench", "p/a"}, "text"); };
  const auto who = [&] { aws_->WhoAmI(); };
  const std::pair<std::function<void()>, const char*> cases[] = {
      {rows, "{}"},
      {rows, R"({"TrainingJobSummaries": {}})"},
      {rows, R"({"TrainingJobSummaries": [5]})"},
      {rows, R"({"TrainingJobSummaries": [{"TrainingJobName": 5, "TrainingJobStatus": "Failed"}]})"},
      {rows, R"({"TrainingJobSummaries": [], "NextToken": 5})"},
      {job, R"({"TrainingJobName": "x"})"},
      {job, R"({"TrainingJobName": "x", "TrainingJobStatus": []})"},
      {job, R"({"TrainingJobName": "x", "TrainingJobStatus": "Failed", "FailureReason": 5})"},
      {job, R"({"TrainingJobName": "x", "TrainingJobStatus": "Failed", "BillableTimeInSeconds": "5"})"},
      {job, R"({"TrainingJobName": "x", "TrainingJobStatus": "Failed", "EnableManagedSpotTraining": "no"})"},
      {job, R"({"TrainingJobName": "x", "TrainingJobStatus": "Failed", "SecondaryStatusTransitions": ["a"]})"},
      {log, R"({"events": "none"})"},
      {log, R"({"events": [null]})"},
      {log, R"({"events": [{"eventId": "1", "timestamp": "now"}]})"},
      {log, R"({"events": [{"eventId": "1", "timestamp": 5, "message": 7}]})"},
      {list, "<html>sign in</html>"},
      {list, "<ListBucketResult><Contents>"},
      {get, "<html>sign in</html>"},
      {put, ""},
      {who, "<html>sign in</html>"}};
  for (const auto& [call, body] : cases) {
    EXPECT_EQ(KindAfter(body, call), Failure::Kind::kNotNow) << body;
    const size_t sent = http_->sent.size();
    EXPECT_GT(sent, 1U) << body;
    http_->sent.clear();
  }
  Answers(403, "<html>a proxy</html>");
  Answers(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>");
  EXPECT_EQ(aws_->Get({"bench", "p/a"}).code, "AccessDenied");
  Answers(200, "text", 0, "\"etag\"");
  EXPECT_EQ(aws_->Get({"bench", "p/a"}).body, "text");
}

TEST_F(SageMakerCalls, EndWithNotNowIfNobodyAnswers) {
  try {
    Call();
    FAIL();
  } catch (const Failure& e) {
    EXPECT_EQ(e.kind(), Failure::Kind::kNotNow);
    EXPECT_THAT(e.message(), HasSubstr("nobody answers"));
  }
}

TEST_F(SageMakerCalls, OutlastNamesThatDoNotResolveForAWhile) {
  http_->answers.assign(30, {0, "", "Could not resolve host: api.sagemaker.us-west-2.amazonaws.com", 0, "", ""});
  Answers(200, "{}");
  const auto begin = clock_.Now();
  int not_now = 0;
  for (bool answered = false; !answered;) {
    try {
      answered = Call().ok();
    } catch (const Failure& e) {
      ASSERT_EQ(e.kind(), Failure::Kind::kNotNow);
      EXPECT_THAT(e.message(), HasSubstr("Could not resolve host"));
      ++not_now;
    }
  }
  EXPECT_GE(clock_.Now() - begin, std::chrono::seconds(25));
  EXPECT_GE(not_now, 2) << "a call has its patience, and the driver asks again";
}

TEST_F(SageMakerCalls, ListWhatIsStillBilled) {
  const auto row = [](const char* name, const char* status, const char* pool) {
    return Json{{"TrainingJobName", name},
                {"TrainingJobStatus", status},
                {"WarmPoolStatus", *pool == '\0' ? Json() : Json{{"Status", pool}}}};
  };
  const Json first = {{"TrainingJobSummaries",
                       Json::array({row("my-sweep-rl-1", "InProgress", ""), row("not-my-sweep-rl-2", "InProgress", ""),
                                    row("my-sweep-rl-3", "Completed", "Reused")})},
                      {"NextToken", "t"}};
  const Json last = {{"TrainingJobSummaries", Json::array({row("my-sweep-rl-4", "Completed", "Available"),
                                                           row("my-sweep-rl-5", "Stopping", "")})}};
  Answers(200, first.dump());
  Answers(200, last.dump());
  const TempDir dir;
  Session session(dir.path(), ReadOptions(Settings()), std::move(aws_), clock_);
  EXPECT_THAT(session.StillBilled("my sweep"),
              ::testing::ElementsAre("training job my-sweep-rl-1: InProgress",
                                     "instances that training job my-sweep-rl-4 left: kept warm",
                                     "training job my-sweep-rl-5: Stopping"));
}

TEST_F(SageMakerCalls, AreNotRepeatedAfterARefusal) {
  Answers(400, R"({"__type": "com.amazon#AccessDeniedException", "Message": "no"})");
  const Answer answer = Call();
  EXPECT_EQ(answer.code, "AccessDeniedException");
  EXPECT_EQ(Aws::ToFailure(answer, "list").reason(), "rights");
}

TEST_F(SageMakerCalls, LogInAgainWhenTheTokenHasExpired) {
  Answers(400, R"({"__type": "ExpiredTokenException", "message": "expired"})");
  Answers(200, "{}");
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(logins_, 2);
}

TEST_F(SageMakerCalls, TakeTheServicesTimeIfOursIsWrong) {
  Answers(400, R"({"__type": "InvalidSignatureException", "message": "older or newer than 15 minutes"})",
          clock_.UnixS() + 1200);
  Answers(200, "{}");
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(aws_->UnixS(), clock_.UnixS() + 1200);
  EXPECT_NE(http_->sent[0].headers.at("x-amz-date"), http_->sent[1].headers.at("x-amz-date"));
}

TEST_F(SageMakerCalls, SendNoTokenInTheClear) {
  variables_["AWS_ENDPOINT_URL"] = "http://example.com";
  EXPECT_THROW(Call(), Failure);
  variables_["AWS_ENDPOINT_URL"] = "https://example.com/";
  Answers(200, "{}");
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(http_->sent.front().url, "https://example.com/");
}

TEST_F(SageMakerCalls, ListS3PageByPageByTheLastKey) {
  Answers(200,
          "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>p/a</Key></Contents></ListBucketResult>");
  Answers(200,
          "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/b</Key></Contents></ListBucketResult>");
  EXPECT_THAT(aws_->List({"bench", "p/"}, 10), ::testing::ElementsAre("p/a", "p/b"));
  EXPECT_EQ(http_->sent[1].url, "https://s3.us-west-2.amazonaws.com/bench?list-type=2&prefix=p%2F&start-after=p%2Fa");
}

}  // namespace
}  // namespace ridgeline::sagemaker
