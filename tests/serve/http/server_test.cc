// The server over real sockets: access, limits, and live updates.
#include "serve/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "serve/connection.h"
#include "store/store.h"
#include "tests/base/eventually.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"
#include "tests/store/samples.h"

namespace ridgeline::serve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A server of a store with the sample, for the life of this object.
class Served {
 public:
  explicit Served(ServerOptions options = {})
      : site_(db(), {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "reports"}, clock_, options.base_path),
        server_(site_, WithAddress(std::move(options))) {
    {
      store::Store store = store::Store::Open(db(), store::Store::Mode::kReadWrite);
      report_sample::FillSample(store);
    }
    thread_ = std::thread([this] { server_.Run([this] { return stop_.load(); }); });
    EXPECT_TRUE(testing::Eventually([&] { return Client().Get("/metrics") != nullptr; }));
  }
  ~Served() {
    stop_ = true;
    thread_.join();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  std::filesystem::path db() const { return dir_ / "ridgeline.db"; }
  int port() const { return server_.port(); }
  httplib::Client Client() const { return httplib::Client("127.0.0.1", server_.port()); }

  // The answer to these bytes, until the other side closes.
  std::string Raw(const std::string& bytes) const {
    const int fd = Connect();
    EXPECT_TRUE(WriteSocket(fd, bytes));
    std::string answer;
    char part[4096];
    for (ssize_t n = 0; (n = ::recv(fd, part, sizeof part, 0)) > 0;) answer.append(part, static_cast<size_t>(n));
    ::close(fd);
    return answer;
  }
  int Connect() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port()));
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

 private:
  static ServerOptions WithAddress(ServerOptions options) {
    options.listen = {"127.0.0.1", 0};
    return options;
  }

  TempDir dir_;
  SystemClock clock_;
  Site site_;
  SiteServer server_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(SiteServer, AnswersWithItsPolicyAndIsKeptByNobody) {
  Served served;
  const auto page = served.Client().Get("/runs?precision=fp32");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, HasSubstr("4 runs, the newest first: precision fp32"));
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"), StartsWith("default-src 'none'; style-src 'sha256-"));
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(served.Client().Get("/")->get_header_value("Cache-Control"), "no-store");
  EXPECT_EQ(page->get_header_value("Access-Control-Allow-Origin"), "") << "no other site reads it";
  EXPECT_EQ(served.Client().Get("/nowhere")->status, 404);
  EXPECT_EQ(served.Client().Get("/%2e%2e/%2e%2e/etc/passwd")->status, 404);
}

TEST(SiteServer, ChangesNothingWhateverIsAsked) {
  Served served;
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"}) {
    const std::string answer =
        served.Raw(std::string(method) + " /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_THAT(answer, AllOf(HasSubstr(" 405 "), HasSubstr("Allow: GET, HEAD"))) << method;
  }
}

TEST(SiteServer, AnswersToAddressesAndToItsNames) {
  ServerOptions options;
  options.names = {"bench.example.org"};
  Served served(options);
  const auto ask = [&](const std::string& host) {
    return served.Raw("GET / HTTP/1.1\r\n" + (host.empty() ? "" : "Host: " + host + "\r\n") + "\r\n");
  };
  for (const char* host : {"127.0.0.1", "localhost:9", "bench.example.org"}) {
    EXPECT_THAT(ask(host), HasSubstr(" 200 OK")) << host;
  }
  for (const char* host : {"evil.example", "", "localhost.evil.example"}) {
    EXPECT_THAT(ask(host), AllOf(HasSubstr(" 421 "), HasSubstr("not known by that name"))) << host;
  }
}

TEST(SiteServer, AsksEverybodyForTheToken) {
  ServerOptions options;
  options.token = "0123456789abcdef";
  Served served(options);
  const auto none = served.Client().Get("/metrics");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->status, 401);
  EXPECT_THAT(none->get_header_value("WWW-Authenticate"), StartsWith("Basic realm"));
  EXPECT_EQ(none->body.find("ridgeline_"), std::string::npos);
  for (const char* path : {"/", "/events", "/nowhere"}) EXPECT_EQ(served.Client().Get(path)->status, 401) << path;
  EXPECT_EQ(served.Client().Get("/metrics", {{"Authorization", "Bearer 0123456789abcdef"}})->status, 200);
  EXPECT_EQ(served.Client().Get("/metrics", {{"Authorization", "Basic YTowMTIzNDU2Nzg5YWJjZGVm"}})->status, 200);
}

TEST(SiteServer, ReadsNoMoreThanARequestTakes) {
  Served served;
  EXPECT_THAT(served.Raw("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(kMostHeadBytes, 'x')),
              HasSubstr(" 431 "));
  EXPECT_THAT(served.Raw("GET /" + std::string(6000, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              HasSubstr(" 400 "));
  EXPECT_THAT(served.Raw("\x16\x03\x01 nonsense\r\n\r\n"), HasSubstr(" 400 "));
  EXPECT_EQ(served.Client().Get("/")->status, 200) << "it goes on";
}

TEST(SiteServer, AnswersHeadAsGetWithoutTheBody) {
  Served served;
  for (const char* path : {"/", "/runs", "/history", "/compare", "/reports", "/reports/scaling", "/reports/scaling.csv",
                           "/metrics", "/healthz", "/events", "/nowhere"}) {
    const std::string answer = served.Raw(std::string("HEAD ") + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const bool is_there = std::string_view(path) != "/nowhere";
    EXPECT_THAT(answer, AllOf(StartsWith(is_there ? "HTTP/1.1 200" : "HTTP/1.1 404"), HasSubstr("Content-Type: ")));
    EXPECT_EQ(answer.find("\r\n\r\n") + 4, answer.size()) << path;
  }
  const auto page = served.Client().Get("/runs");
  const auto head = served.Client().Head("/runs");
  ASSERT_TRUE(page && head);
  EXPECT_EQ(head->get_header_value("Content-Length"), page->get_header_value("Content-Length"));
  EXPECT_EQ(head->get_header_value("ETag"), page->get_header_value("ETag"));
}

TEST(SiteServer, SendsWhatIsKnownOnceAndCompressed) {
  Served served;
  const auto ask = [&](const std::string& more) {
    return served.Raw("GET /reports/scaling HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n");
  };
  const std::string plain = ask("");
  const std::string compressed = ask("Accept-Encoding: br, gzip\r\n");
  EXPECT_THAT(compressed, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Encoding: gzip"),
                                HasSubstr("Vary: Accept-Encoding"), HasSubstr("Cache-Control: private, no-cache")));
  EXPECT_LT(compressed.size(), plain.size() / 2);
  const size_t at = plain.find("ETag: ");
  ASSERT_NE(at, std::string::npos);
  const std::string tag = plain.substr(at + 6, plain.find("\r\n", at) - at - 6);
  const std::string known = ask("If-None-Match: W/\"other\", " + tag + "\r\n");
  EXPECT_THAT(known, AllOf(StartsWith("HTTP/1.1 304"), HasSubstr("ETag: " + tag)));
  EXPECT_EQ(known.find("Content-Length"), std::string::npos);
  EXPECT_EQ(known.find("\r\n\r\n") + 4, known.size());
  EXPECT_THAT(ask("If-None-Match: \"other\"\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST(SiteServer, TakesAUrlForATargetAndItsHostForTheName) {
  Served served;
  EXPECT_THAT(served.Raw("GET http://localhost/runs HTTP/1.1\r\nHost: evil.example\r\n\r\n"), HasSubstr(" 200 OK"));
  EXPECT_THAT(served.Raw("GET http://evil.example/runs HTTP/1.1\r\nHost: localhost\r\n\r\n"), HasSubstr(" 421 "));
}

TEST(SiteServer, StandsBelowABasePathThatAProxyLeavesOrTakesOff) {
  ServerOptions options;
  options.base_path = "/ridgeline";
  Served served(options);
  for (const char* path : {"/runs", "/ridgeline/runs"}) {
    const auto page = served.Client().Get(path);
    ASSERT_TRUE(page);
    EXPECT_EQ(page->status, 200) << path;
    EXPECT_THAT(page->body, HasSubstr("<a href=\"/ridgeline/runs/"));
  }
  for (const char* path : {"/ridgeline", "/ridgeline/", "/ridgeline/metrics", "/ridgeline/healthz"}) {
    EXPECT_EQ(served.Client().Get(path)->status, 200) << path;
  }
  EXPECT_EQ(served.Client().Get("/ridgelines/runs")->status, 404);
  EXPECT_THAT(served.Client().Get("/ridgeline/")->body, HasSubstr("data-events=\"/ridgeline/events\""));
  EXPECT_THAT(served.Raw("HEAD /ridgeline/events HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              AllOf(HasSubstr(" 200 OK"), HasSubstr("X-Accel-Buffering: no")));
}

TEST(SiteServer, SaysOfADatabaseThatBecameAFifoThatItDoesNotAnswerAndGoesOnWhereItIsBack) {
  Served served;
  EXPECT_EQ(served.Client().Get("/healthz")->body, "ok\n");
  std::filesystem::rename(served.db(), served.db().string() + ".away");
  ASSERT_EQ(::mkfifo(served.db().c_str(), 0600), 0);
  const auto health = [&] { return served.Client().Get("/healthz"); };
  EXPECT_TRUE(testing::Eventually([&] { return health()->status == 503; }));
  EXPECT_THAT(health()->body, HasSubstr("is not a regular file"));
  for (const char* path : {"/runs", "/history", "/reports/scaling"}) {
    EXPECT_THAT(served.Client().Get(path)->body, HasSubstr("is not a regular file")) << path;
  }
  EXPECT_TRUE(testing::Eventually([&] { return served.Client().Get("/metrics")->status == 503; }));
  std::filesystem::remove(served.db());
  std::filesystem::rename(served.db().string() + ".away", served.db());
  EXPECT_TRUE(testing::Eventually([&] { return health()->status == 200; }));
  EXPECT_TRUE(testing::Eventually([&] { return served.Client().Get("/metrics")->status == 200; }));
}

// Reads until the body contains all of `wanted`.
std::string EventsUntil(const Served& served, const std::string& path,
                        const std::function<bool(const std::string&)>& seen) {
  std::string said;
  httplib::Client client = served.Client();
  client.set_read_timeout(120);
  client.Get(path, [&](const char* data, size_t size) {
    said.append(data, size);
    return !seen(said);
  });
  return said;
}

TEST(SiteServer, TellsWhatIsLiveAsItChanges) {
  Served served;
  const std::vector<Point> points = samples::Points(2);
  bool added = false;
  const std::string said = EventsUntil(served, "/events", [&](const std::string& so_far) {
    if (!added && so_far.find("\n\n") != std::string::npos) {
      added = true;
      store::Store store = store::Store::Open(served.db(), store::Store::Mode::kReadWrite);
      store.PutSweep(samples::Sweep("later"), points);
    }
    return so_far.find("/sweeps/later") != std::string::npos;
  });
  EXPECT_THAT(said, AllOf(StartsWith("retry: 2000\nevent: live\ndata: "), HasSubstr("/sweeps/sample"),
                          HasSubstr("/sweeps/later")));
}

TEST(SiteServer, BoundsHowManyWatchAndForgetsWhoLeft) {
  Served served;
  std::vector<int> watching;
  for (size_t i = 0; i < SiteServer::kStreams; ++i) {
    watching.push_back(served.Connect());
    EXPECT_TRUE(WriteSocket(watching.back(), "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    char part[64];
    EXPECT_GT(::recv(watching.back(), part, sizeof part, 0), 0) << "it is told";
  }
  EXPECT_THAT(served.Raw("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"), HasSubstr(" 503 "));
  EXPECT_EQ(served.Client().Get("/")->status, 200) << "pages have threads of their own";
  for (const int fd : watching) ::close(fd);
  EXPECT_TRUE(testing::Eventually([&] {
    const std::string said = EventsUntil(served, "/events", [](const std::string&) { return true; });
    return said.find("event: live") != std::string::npos;
  }));
}

TEST(SiteServer, SaysWhereItCannotListen) {
  Served served;
  TempDir dir;
  SystemClock clock;
  Site site(dir / "ridgeline.db", {}, clock);
  ServerOptions options;
  options.listen = {"192.0.2.1", 8320};  // an address of no machine (RFC 5737)
  try {
    const SiteServer server(site, options);
    FAIL() << "it listens";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("cannot listen on 192.0.2.1 port 8320"));
  }
}

}  // namespace
}  // namespace ridgeline::serve
