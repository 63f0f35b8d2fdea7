// A Kubernetes API server, reached as kubectl reaches it: `kubectl proxy` on a socket of our own does the logging in,
// whatever way the cluster wants that done, and everything else is HTTP.
//
// Thread safety: none; one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/failure.h"
#include "kubernetes/config.h"

namespace ridgeline::kubernetes {

struct Request {
  std::string method;  // GET, POST, DELETE
  std::string path;    // with its query
  plugin::Json body;   // null: none
};

struct Response {
  int64_t code = 0;  // of HTTP; 0: no answer
  std::string body;
  std::string problem;        // where there was no answer
  int64_t date_unix_s = 0;    // the server's time as it answered; 0: it did not say
  int64_t retry_after_s = 0;  // for how long it wants to be left alone; 0: it did not say
  bool ok() const { return code >= 200 && code < 300; }
  plugin::Json Document() const;  // throws Failure where the body is no JSON
  std::string Message() const;    // what the server says was wrong
};

// An answer without an end: a watch, or a log that is followed.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual int64_t code() const = 0;  // of HTTP; 0: not known yet, or no answer
  virtual bool ended() const = 0;
  virtual std::string problem() const = 0;             // it ended, and not where the server meant it to
  virtual int64_t retry_after_s() const { return 0; }  // as of a Response
  // The next whole line that has come; nothing where none has. The rest, without its end, once the stream has ended.
  virtual bool Next(std::string& line) = 0;
};

// Codes of HTTP that mean something to whoever asked.
inline constexpr int64_t kUnauthorized = 401;
inline constexpr int64_t kForbidden = 403;
inline constexpr int64_t kNotFound = 404;
inline constexpr int64_t kConflict = 409;
inline constexpr int64_t kGone = 410;

class Cluster {
 public:
  explicit Cluster(const plugin::Clock& clock) : clock_(clock) {}
  // Starts kubectl; throws Failure where that is not possible. What the kubeconfig, context and namespace are follows
  // `options`, else kubectl's own rules. A folder for the socket is made, and those of dead processes are removed.
  static std::unique_ptr<Cluster> Connect(const Options& options, const plugin::Clock& clock);
  virtual ~Cluster() = default;

  virtual const std::string& name_space() const = 0;
  // Where its Jobs are, and its objects of another kind ("pods").
  std::string JobsPath() const { return "/apis/batch/v1/namespaces/" + name_space() + "/jobs"; }
  std::string CorePath(const std::string& kind) const { return "/api/v1/namespaces/" + name_space() + '/' + kind; }

  // All answers, in order. Streams go on meanwhile. A server that wants to be left alone (Retry-After) is not asked
  // until then: this throws Failure, kNotNow, and so does Open.
  std::vector<Response> CallAll(const std::vector<Request>& requests);
  Response Call(const Request& request) { return CallAll({request}).front(); }

  std::unique_ptr<Stream> Open(const std::string& path);
  // The time as the server has it, as of the Date of its last answer: times of its objects are compared with that. Of
  // a server that has not said it yet, this machine's.
  int64_t UnixS() const;

  // Takes in what has come of the streams.
  virtual void Pump() = 0;
  // Waits until more has come of them, at most so long, and takes it in.
  virtual void Await(std::chrono::milliseconds most) = 0;

  // What a response that is not ok means for whoever meant to do `what` ("create Job rl-1"). Of one who is not known
  // the login is read again.
  plugin::Failure ToFailure(const Response& response, const std::string& what);
  // A server that has just been started refuses everybody, until it knows who may do what.
  void NoteOutage() { last_outage_ = clock_.Now(); }

 protected:
  virtual std::vector<Response> AskAll(const std::vector<Request>& requests) = 0;
  virtual std::unique_ptr<Stream> OpenStream(const std::string& path) = 0;
  // Tokens and certificates run out, and whoever renews them writes them where kubectl reads them: once more, then, and
  // not too often. False where that was done a moment ago.
  virtual bool LogInAgain() { return false; }
  const plugin::Clock& clock() const { return clock_; }

 private:
  // What the server says of the time in an answer.
  void NoteTimes(const Response& response);
  void ThrowIfLeftAlone() const;

  const plugin::Clock& clock_;
  std::optional<plugin::Clock::Time> last_outage_;
  int64_t date_unix_s_ = 0;
  plugin::Clock::Time date_at_;
  plugin::Clock::Time left_alone_until_;
};

// For a query: everything but letters, digits and -_.~ as %XX.
std::string UrlEncode(std::string_view text);

}  // namespace ridgeline::kubernetes
