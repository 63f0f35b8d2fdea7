#include "serve/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files.h"
#include "serve/connection.h"
#include "serve/gzip.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::serve {
namespace {

using ::testing::HasSubstr;

TEST(Access, AddressesToListenOnAreReadAndOthersRefused) {
  EXPECT_EQ(ParseListenAddress("127.0.0.1:8320").host, "127.0.0.1");
  EXPECT_EQ(ParseListenAddress("127.0.0.1:8320").port, 8320);
  EXPECT_EQ(ParseListenAddress("localhost:0").host, "127.0.0.1");
  EXPECT_EQ(ParseListenAddress("[::1]:9000").host, "::1");
  for (const char* text : {"", ":", "8320", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
                           "example.org:80", "::1:80", "[::1]", "[::1", "127.0.0.1:80 "}) {
    EXPECT_THROW(ParseListenAddress(text), Error) << text;
  }
}

TEST(Access, OnlyThisMachineReachesLoopback) {
  EXPECT_TRUE(IsLoopback("127.0.0.1"));
  EXPECT_TRUE(IsLoopback("127.8.0.1"));
  EXPECT_TRUE(IsLoopback("::1"));
  for (const char* host : {"0.0.0.0", "::", "192.168.0.1", "localhost"}) EXPECT_FALSE(IsLoopback(host)) << host;
}

TEST(Access, NamesThatCouldBeMadeToMeanThisMachineAreNotKnown) {
  const std::vector<std::string> names = {"bench.example.org"};
  for (const char* host : {"127.0.0.1:8320", "localhost", "LOCALHOST:1", "[::1]:8320", "192.168.0.1",
                           "bench.example.org", "Bench.Example.org:80"}) {
    EXPECT_TRUE(IsKnownHost(host, names)) << host;
  }
  for (const char* host : {"", "evil.example", "evil.example:8320", "127.0.0.1.evil.example", "localhost.evil.example",
                           "127.0.0.1@evil.example", "[::1", "[", "[]", "localhost:80x", "bench.example.org.",
                           "0x7f.0.0.1.example", "[::1]evil.example"}) {
    EXPECT_FALSE(IsKnownHost(host, names)) << host;
  }
}

TEST(Access, TheTokenIsTakenAsABearersOrAPassword) {
  const std::string token = "0123456789abcdef";
  EXPECT_TRUE(HasToken("Bearer 0123456789abcdef", token));
  EXPECT_TRUE(HasToken("bearer  0123456789abcdef ", token));
  EXPECT_TRUE(HasToken("Basic YTowMTIzNDU2Nzg5YWJjZGVm", token)) << "a:TOKEN";
  for (const char* said : {"", "Bearer", "Bearer ", "Bearer 0123456789abcdeg", "Bearer 0123456789abcde",
                           "Bearer 0123456789abcdef0123456789abcdef", "0123456789abcdef", "Basic !!!",
                           "Basic YQ==", "Basic MDEyMzQ1Njc4OWFiY2RlZg==", "Digest 0123456789abcdef"}) {
    EXPECT_FALSE(HasToken(said, token)) << said;
  }
  EXPECT_FALSE(HasToken("Bearer ", "")) << "no token is asked for elsewhere";
}

TEST(Access, ATokenFileIsOnesOwnAndHoldsOneThatCannotBeGuessed) {
  TempDir dir;
  const std::string file = dir / "token";
  WritePrivateFile(file, "0123456789abcdef\n");
  EXPECT_EQ(ReadTokenFile(file), "0123456789abcdef");
  ::chmod(file.c_str(), 0644);
  try {
    ReadTokenFile(file);
    FAIL() << "others may read it";
  } catch (const Error& e) {
    EXPECT_THAT(e.hint(), HasSubstr("chmod 600"));
  }
  for (const char* text : {"", "\n", "short\n", "0123456789abcdef 0123\n", "0123456789abcdef\nmore-of-it\n"}) {
    WritePrivateFile(file, text);
    EXPECT_THROW(ReadTokenFile(file), Error) << text;
  }
}

TEST(Connection, OnlyWhatIsLookedAtIsKeptOfARequest) {
  const auto asked = ParsePlainRequest(
      "GET /runs?a=b HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1,2-3\r\nContent-Length: 5\r\n"
      "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\nACCEPT: text/html\r\nAccept-Encoding: br\r\n"
      "accept-encoding: gzip\r\nIf-None-Match: \"a\"\r\n\r\nhello");
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->head, "GET /runs?a=b HTTP/1.1\r\nHost: localhost\r\nACCEPT: text/html\r\n\r\n");
  EXPECT_EQ(asked->path(), "/runs");
  EXPECT_EQ(asked->accept_encoding, "br, gzip");
  EXPECT_EQ(asked->if_none_match, "\"a\"");
  EXPECT_EQ(ParsePlainRequest("POST / HTTP/1.0\r\n\r\n")->head, "POST / HTTP/1.1\r\n\r\n");
}

TEST(Connection, AWholeUrlNamesTheHost) {
  EXPECT_EQ(ParsePlainRequest("GET http://a:1/runs?x HTTP/1.1\r\nHost: b\r\n\r\n")->head,
            "GET /runs?x HTTP/1.1\r\nHost: a:1\r\n\r\n");
  EXPECT_EQ(ParsePlainRequest("GET HTTPS://a?x HTTP/1.1\r\n\r\n")->target, "/?x");
  EXPECT_EQ(ParsePlainRequest("GET http://a HTTP/1.1\r\n\r\n")->target, "/");
  for (const char* wrong : {"http:///x", "http://u@a/", "ftp://a/", "a/b", "*"}) {
    EXPECT_FALSE(ParsePlainRequest(std::string("GET ") + wrong + " HTTP/1.1\r\nHost: b\r\n\r\n")) << wrong;
  }
}

TEST(Access, ABasePathIsAPathAndNothingElse) {
  EXPECT_EQ(ParseBasePath("/"), "");
  EXPECT_EQ(ParseBasePath("/ridgeline/"), "/ridgeline");
  EXPECT_EQ(ParseBasePath("/bench/a-b_1"), "/bench/a-b_1");
  for (const char* wrong : {"", "ridgeline", "//evil.example", "/a//b", "/a/../b", "/a\"b", "/a?b", "http://a/"}) {
    EXPECT_THROW(ParseBasePath(wrong), Error) << wrong;
  }
}

TEST(Gzip, IsSentToClientsThatAcceptItAndUnpacksToTheSameBytes) {
  for (const char* header : {"gzip", "br, gzip;q=0.5", "deflate , gzip", "*", "gzip;q=1.0, *;q=0"}) {
    EXPECT_TRUE(AcceptsGzip(header)) << header;
  }
  for (const char* header : {"", "br", "gzip;q=0", "gzip; q=0.000, *", "*;q=0", "xgzip"}) {
    EXPECT_FALSE(AcceptsGzip(header)) << header;
  }
  std::string long_text;
  for (int i = 0; i < 100'000; ++i) long_text += std::to_string(i * 7919 % 10'007);
  for (const std::string& text : {std::string(), std::string("a\0b", 3), long_text}) {
    EXPECT_EQ(Gunzip(Gzip(text)), text);
  }
  EXPECT_LT(Gzip(std::string(1'000'000, 'x')).size(), 10'000U);
}

TEST(Connection, RefusesWhatIsNoRequest) {
  const std::string long_target = "GET /" + std::string(5000, 'x') + " HTTP/1.1\r\n\r\n";
  for (const std::string& head :
       {std::string("\r\n\r\n"), std::string("GET / HTTP/2\r\n\r\n"), std::string("GET\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), std::string("GET / HTTP/1.1\r\nno colon\r\n\r\n"),
        std::string("GET /\x01 HTTP/1.1\r\n\r\n"), std::string("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 29), std::string("GET / x HTTP/1.1\r\n\r\n"), long_target,
        std::string("no line's end")}) {
    EXPECT_FALSE(ParsePlainRequest(head)) << head.substr(0, 80);
  }
}

}  // namespace
}  // namespace ridgeline::serve
