// A Kubernetes API server, reached as kubectl reaches it. `kubectl proxy` on a socket of our own logs in, in whatever
// way the cluster requires. Everything else is HTTP.
//
// Thread safety: use from one thread at a time.
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
#include "kubernetes/kinds.h"

namespace ridgeline::kubernetes {

struct Request {
  std::string method;  // GET, POST, DELETE
  std::string path;    // including the query
  plugin::Json body;   // null: none
};

struct Response {
  int64_t code = 0;  // HTTP status code; 0: no answer
  std::string body;
  std::string problem;        // why there was no answer
  int64_t date_unix_s = 0;    // the server's time when it answered; 0: not given
  int64_t retry_after_s = 0;  // how long the server wants to be left alone; 0: not given
  bool ok() const { return code >= 200 && code < 300; }
  plugin::Json Document() const;  // throws Failure if the body is not JSON
  std::string Message() const;    // the server's description of the error
};

// An answer without end: a watch, or a followed log.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual int64_t code() const = 0;  // HTTP status code; 0: not known yet, or no answer
  virtual bool ended() const = 0;
  virtual std::string problem() const = 0;             // why it ended too early; empty if it did not
  virtual int64_t retry_after_s() const { return 0; }  // as in Response
  // Returns whether a whole line has come, and that line. After the stream's end it also returns the rest without a
  // line end.
  virtual bool Next(std::string& line) = 0;
};

// HTTP status codes with a meaning for callers.
inline constexpr int64_t kUnauthorized = 401;
inline constexpr int64_t kForbidden = 403;
inline constexpr int64_t kNotFound = 404;
inline constexpr int64_t kConflict = 409;
inline constexpr int64_t kGone = 410;

class Cluster {
 public:
  // `kind`: what jobs become there.
  Cluster(const plugin::Clock& clock, const Kind& kind) : clock_(clock), kind_(kind) {}
  // Starts kubectl. Throws Failure if that is impossible. `options` choose kubeconfig, context and namespace, else
  // kubectl's own rules do. Makes a folder for the socket, and removes the folders of dead processes.
  static std::unique_ptr<Cluster> Connect(const Options& options, const plugin::Clock& clock);
  virtual ~Cluster() = default;

  virtual const std::string& name_space() const = 0;
  const Kind& kind() const { return kind_; }
  // The path of the jobs' objects, and of its core objects ("pods").
  std::string JobsPath() const { return kind_.Path(name_space()); }
  std::string CorePath(const std::string& kind) const { return "/api/v1/namespaces/" + name_space() + '/' + kind; }
  // The path of the objects of an object's kind.
  std::string PathOf(const plugin::Json& object) const;

  // Returns all answers, in order. Streams go on meanwhile. If the server wants to be left alone (Retry-After), throws
  // Failure with kNotNow until then. So does Open.
  std::vector<Response> CallAll(const std::vector<Request>& requests);
  Response Call(const Request& request) { return CallAll({request}).front(); }

  std::unique_ptr<Stream> Open(const std::string& path);
  // The server's time, according to the Date of its last answer. Times of its objects are compared with that. Until the
  // server has reported it, this machine's time.
  int64_t UnixS() const;

  // Takes in what has come on the streams.
  virtual void Pump() = 0;
  // Waits until more has come on the streams, up to `most`, and takes it in.
  virtual void Await(std::chrono::milliseconds most) = 0;

  // Makes a Failure of a response that is not ok to the request to do `what` ("create Job rl-1"). If the server does
  // not know us, reads the login again.
  plugin::Failure ToFailure(const Response& response, const std::string& what);
  // A server that has just started refuses everybody until it knows who may do what.
  void NoteOutage() { last_outage_ = clock_.Now(); }

 protected:
  virtual std::vector<Response> AskAll(const std::vector<Request>& requests) = 0;
  virtual std::unique_ptr<Stream> OpenStream(const std::string& path) = 0;
  // Reads the login again, but not too often. Tokens and certificates expire, and are renewed where kubectl reads them.
  // Returns false if that was done a moment ago.
  virtual bool LogInAgain() { return false; }
  const plugin::Clock& clock() const { return clock_; }

 private:
  // Remembers the times that an answer states.
  void NoteTimes(const Response& response);
  void ThrowIfLeftAlone() const;

  const plugin::Clock& clock_;
  const Kind& kind_;
  std::optional<plugin::Clock::Time> last_outage_;
  int64_t date_unix_s_ = 0;
  plugin::Clock::Time date_at_;
  plugin::Clock::Time left_alone_until_;
};

// What an object is called in paths and rights.
struct Resource {
  std::string group;   // empty: the core's
  std::string plural;  // "configmaps"
};
Resource ResourceOf(const plugin::Json& object);

}  // namespace ridgeline::kubernetes
