#include "serve/server.h"

#include <fcntl.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serve/connection.h"
#include "serve/connections.h"
#include "serve/lane.h"

namespace ridgeline::serve {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kTellEvery = std::chrono::seconds(1);
constexpr auto kStillHereEvery = std::chrono::seconds(15);
// Ends a stream after this time: a browser reconnects by itself, and clients that vanished unnoticed are forgotten.
constexpr auto kLongestStream = std::chrono::minutes(10);
// When told to end: time for begun requests, and then for their answers to be sent.
constexpr auto kEndPatience = std::chrono::seconds(10);
constexpr auto kLastWrites = std::chrono::seconds(1);

// Functions that only some versions of the library declare for a stream: is_writable until 0.18, the others later. So
// none of them is marked as an override.
template <typename Stream>
class AnyStream : public Stream {
 public:
  // NOLINTBEGIN(modernize-use-override)
  virtual bool is_writable() const { return HasReader(); }
  virtual bool wait_readable() const { return this->is_readable(); }
  virtual bool wait_writable() const { return HasReader(); }
  virtual time_t duration() const { return 0; }
  // NOLINTEND(modernize-use-override)

 private:
  // Whether something can be written and the reader is still there: a closed connection is readable, at its end.
  bool HasReader() const {
    pollfd one{this->socket(), POLLOUT | POLLRDHUP, 0};
    return ::poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
  }
};

// A request that has been read, and the destination of its answer: a socket or, if that is -1, a buffer to be taken
// when it is whole.
class HeadStream final : public AnyStream<httplib::Stream> {
 public:
  HeadStream(std::string head, int socket) : head_(std::move(head)), socket_(socket) {}
  std::string TakeWritten() { return std::move(written_); }

  bool is_readable() const override { return at_ < head_.size(); }
  ssize_t read(char* to, size_t size) override {
    const size_t n = std::min(size, head_.size() - at_);
    std::copy_n(head_.data() + at_, n, to);
    at_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, size_t size) override {
    if (socket_ < 0) {
      written_.append(from, size);
      return static_cast<ssize_t>(size);
    }
    return WriteSocket(socket_, {from, size}) ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { NoAddress(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { NoAddress(ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  static void NoAddress(std::string& ip, int& port) {
    ip.clear();
    port = 0;
  }

  std::string head_;
  size_t at_ = 0;
  int socket_;
  std::string written_;
};

// Names of internal headers that no request can send, because they are not among the headers that are kept.
constexpr const char* kAcceptEncoding = "Ridgeline-Accept-Encoding";
constexpr const char* kIfNoneMatch = "Ridgeline-If-None-Match";

}  // namespace

class SiteServer::Impl final : public httplib::Server {
 public:
  Impl(Site& site, ServerOptions options) : site_(site), options_(std::move(options)) {
    // The library's default would let other programs of this user listen on the same port.
    set_socket_options([this](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      listening_ = socket;
    });
    // Runs before the library searches its pattern handlers, of which there are none.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Handle(request, response);
      return HandlerResponse::Handled;
    });
  }
  ~Impl() override {
    if (port_ >= 0) ::close(listening_);  // the library closes only sockets on which it listens
  }

  void Bind() {
    const ListenAddress& listen = options_.listen;
    port_ = listen.port == 0 ? bind_to_any_port(listen.host) : listen.port;
    if (port_ < 0 || (listen.port != 0 && !bind_to_port(listen.host, listen.port))) {
      port_ = -1;
      ThrowErrno(fmt::format("cannot listen on {} port {}", listen.host, listen.port),
                 "another program may be there; --listen names another address, and port 0 is any that is free");
    }
    // The library allows only five connections that are not accepted yet.
    if (::fcntl(listening_, F_SETFL, O_NONBLOCK) != 0 || ::listen(listening_, SOMAXCONN) != 0) {
      ThrowErrno(fmt::format("cannot listen on {} port {}", listen.host, port_), "");
    }
  }

  int port() const { return port_; }

  void RunUntil(const std::function<bool()>& stop, const std::function<void()>& give_up) {
    Connections connections(
        listening_, [this](uint64_t id, int socket, const std::string& head) { return Take(id, socket, head); });
    connections_ = &connections;
    // Declared after the connections, so that their threads end first.
    Lane pages(kPages, kWaiting);
    Lane reports(kReports, kWaiting);
    Lane scrapes(kScrapes, kWaiting);
    Lane watchers(kStreams, 0);
    Lane health(kHealth, kWaiting);
    lanes_ = {&pages, &reports, &scrapes, &watchers, &health};
    const auto end = [&] {
      stopping_ = true;
      for (Lane* lane : lanes_) lane->End();
    };
    try {
      while (!stop()) connections.Turn(kTick);
    } catch (...) {
      end();
      throw;
    }
    end();
    const auto until = std::chrono::steady_clock::now() + kEndPatience;
    const bool ended = std::all_of(lanes_.begin(), lanes_.end(), [&](Lane* lane) { return lane->HasEnded(until); });
    if (!ended && give_up) give_up();
    const auto written_until = std::chrono::steady_clock::now() + kLastWrites;
    do {
      connections.Turn(std::chrono::milliseconds(0));
    } while (connections.IsWriting() && std::chrono::steady_clock::now() < written_until);
  }

 private:
  enum LaneOfRequests { kPage, kReport, kScrape, kWatch, kProbe };

  // The path without the proxy's prefix, which the proxy may remove or keep.
  std::string_view OwnPath(std::string_view path) const {
    const std::string& base = options_.base_path;
    if (base.empty() || !path.starts_with(base)) return path;
    const std::string_view rest = path.substr(base.size());
    return rest.empty() ? "/" : rest.front() == '/' ? rest : path;
  }

  LaneOfRequests LaneOf(std::string_view path) const {
    const std::string_view own = OwnPath(path);
    if (own.starts_with("/reports/")) return kReport;
    return own == "/metrics" ? kScrape : own == "/events" ? kWatch : own == "/healthz" ? kProbe : kPage;
  }

  // Called on the thread of the connections.
  Connections::Reply Take(uint64_t id, int socket, const std::string& head) {
    using Kind = Connections::Reply::Kind;
    std::optional<PlainRequest> plain = ParsePlainRequest(head);
    if (!plain) return {Kind::kNow, Connections::Refusal(400, "not a request that is understood here")};
    const LaneOfRequests lane = LaneOf(plain->path());
    const bool streams = lane == kWatch;
    const bool taken = lanes_.at(lane)->Take([this, id, to = streams ? socket : -1, request = std::move(*plain)] {
      connections_->Finish(id, AnswerTo(request, to));
    });
    if (!taken) {
      const std::string_view words = streams ? "so many watch already" : "so many ask already";
      return {Kind::kNow, Connections::Refusal(503, words, "Retry-After: 10\r\n")};
    }
    return {streams ? Kind::kStreamed : Kind::kLater, {}};
  }

  // The part of the answer that was not written to the socket.
  std::string AnswerTo(const PlainRequest& request, int socket) {
    HeadStream stream(request.head, socket);
    Process(*this, stream, [&](httplib::Request& read) {
      read.set_header(kAcceptEncoding, request.accept_encoding);
      read.set_header(kIfNoneMatch, request.if_none_match);
    });
    std::string answer = stream.TakeWritten();
    // An answer without a body must not have a length: a cache would take it for the page's length.
    constexpr std::string_view kNoLength = "Content-Length: 0\r\n";
    if (answer.starts_with("HTTP/1.1 304 ")) {
      if (const size_t at = answer.find(kNoLength); at != std::string::npos) answer.erase(at, kNoLength.size());
    }
    return answer;
  }

  // Matches the signatures of different versions of the library.
  static void Process(auto& self, HeadStream& stream, const std::function<void(httplib::Request&)>& add) {
    bool closed = false;
    if constexpr (requires { self.process_request(stream, true, closed, add); }) {
      self.process_request(stream, true, closed, add);
    } else {
      self.process_request(stream, "", 0, "", 0, true, closed, add);
    }
  }

  // Returns nothing if the request may be answered.
  bool Refused(const httplib::Request& request, httplib::Response& response) const {
    const auto refuse = [&](int status, const char* words) {
      response.status = status;
      response.set_content(std::string(words) + "\n", "text/plain; charset=utf-8");
      return true;
    };
    if (!IsKnownHost(request.get_header_value("Host"), options_.names)) {
      return refuse(421, "this server is not known by that name: --name lets one in");
    }
    if (!options_.token.empty() && !HasToken(request.get_header_value("Authorization"), options_.token)) {
      response.set_header("WWW-Authenticate", "Basic realm=\"Ridgeline\", charset=\"UTF-8\"");
      return refuse(401, "a token is asked for: as a bearer token, or as the password of any user");
    }
    if (request.method != "GET" && request.method != "HEAD") {
      response.set_header("Allow", "GET, HEAD");
      return refuse(405, "everything here is only read");
    }
    return false;
  }

  void Handle(const httplib::Request& request, httplib::Response& response) {
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("Cross-Origin-Opener-Policy", "same-origin");
    if (Refused(request, response)) return response.set_header("Cache-Control", "no-store");
    PageRequest asked;
    asked.path = OwnPath(request.path);
    asked.accept = request.get_header_value("Accept");
    asked.accept_encoding = request.get_header_value(kAcceptEncoding);
    asked.if_none_match = request.get_header_value(kIfNoneMatch);
    for (const auto& [name, value] : request.params) asked.query.emplace_back(name, value);
    // Uses the target as it arrived, like the choice of its lane: a thread of another lane would stream to nobody.
    const std::string_view target = request.target;
    if (LaneOf(target.substr(0, target.find('?'))) == kWatch) return Stream(request, asked.Value("sweep"), response);
    const PageAnswer answer = site_.Answer(asked);
    response.status = answer.status;
    if (!answer.location.empty()) response.set_header("Location", answer.location);
    if (!answer.policy.empty()) response.set_header("Content-Security-Policy", answer.policy);
    if (!answer.encoding.empty()) response.set_header("Content-Encoding", answer.encoding);
    if (answer.varies) response.set_header("Vary", "Accept-Encoding");
    if (answer.etag.empty()) {
      response.set_header("Cache-Control", "no-store");
    } else {
      response.set_header("ETag", answer.etag);
      response.set_header("Cache-Control", "private, no-cache");
    }
    if (answer.status == 304) return;
    if (!answer.file_name.empty()) {
      std::string name;
      for (const char c : answer.file_name) {
        name += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ? c : '-';
      }
      response.set_header("Content-Disposition", "attachment; filename=\"" + name + "\"");
    }
    response.set_content(answer.body, answer.type);
  }

  // Server-sent events: sends the element `live` whenever it changes.
  void Stream(const httplib::Request& request, const std::string& sweep, httplib::Response& response) {
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Accel-Buffering", "no");  // otherwise nginx would buffer events
    if (request.method == "HEAD") {
      response.set_content("", "text/event-stream");
      return;
    }
    struct Told {
      std::string last;
      std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
      std::chrono::steady_clock::time_point said{};
    };
    const auto told = std::make_shared<Told>();
    response.set_chunked_content_provider(
        "text/event-stream", [this, sweep, told](size_t /*offset*/, httplib::DataSink& sink) {
          const auto now = std::chrono::steady_clock::now();
          std::string bytes;
          if (std::string live = site_.Live(sweep); live != told->last) {
            bytes = EventOf(live);
            told->last = std::move(live);
          } else if (now - told->said > kStillHereEvery) {
            bytes = ": still here\n\n";
          }
          if (!bytes.empty()) {
            told->said = now;
            if (!sink.write(bytes.data(), bytes.size())) return false;
          }
          if (now - told->begin > kLongestStream) {
            sink.done();
            return true;
          }
          for (const auto until = now + kTellEvery; std::chrono::steady_clock::now() < until;) {
            if (stopping_ || !sink.is_writable()) return false;
            std::this_thread::sleep_for(kTick);
          }
          return true;
        });
  }

  static std::string EventOf(const std::string& html) {
    std::string bytes = "retry: 2000\nevent: live\n";
    for (size_t begin = 0; begin < html.size();) {
      const size_t end = std::min(html.find('\n', begin), html.size());
      bytes += "data: " + html.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    return bytes + "\n";
  }

  Site& site_;
  const ServerOptions options_;
  int port_ = -1;
  int listening_ = -1;
  std::atomic<bool> stopping_ = false;
  // Set while the server runs.
  Connections* connections_ = nullptr;
  std::array<Lane*, 5> lanes_ = {};  // by LaneOfRequests
};

SiteServer::SiteServer(Site& site, ServerOptions options) : impl_(std::make_unique<Impl>(site, std::move(options))) {
  impl_->Bind();
}
SiteServer::~SiteServer() = default;

int SiteServer::port() const { return impl_->port(); }

void SiteServer::Run(const std::function<bool()>& stop, const std::function<void()>& give_up) {
  impl_->RunUntil(stop, give_up);
}

}  // namespace ridgeline::serve
