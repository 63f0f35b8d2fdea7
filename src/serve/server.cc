#include "serve/server.h"

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serve/connection.h"

namespace ridgeline {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kTellEvery = std::chrono::seconds(1);
constexpr auto kStillHereEvery = std::chrono::seconds(15);
// A browser asks again by itself, and who went away unnoticed is forgotten.
constexpr auto kLongestStream = std::chrono::minutes(10);

// Threads that take connections in turn. Where all are at work and enough wait, who accepts connections waits as well.
class BoundedQueue final : public httplib::TaskQueue {
 public:
  BoundedQueue(size_t threads, size_t most, const std::atomic<bool>& stopping) : most_(most), stopping_(stopping) {
    for (size_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { Work(); });
    }
  }

  // Of later versions of the library it says whether it took the task.
  using Taken = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));
  Taken enqueue(std::function<void()> task) override {
    {
      std::unique_lock lock(mutex_);
      while (tasks_.size() >= most_ && !stopping_) changed_.wait_for(lock, kTick);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
    return static_cast<Taken>(true);
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void Work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      changed_.notify_all();
      task();
    }
  }

  const size_t most_;
  const std::atomic<bool>& stopping_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  bool ended_ = false;
};

// What versions of the library ask a stream beside what all of them do: is_writable until 0.18, the others later. So
// none of it says that it overrides.
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
  // Whether something can be written, and somebody is there yet: who has closed is readable, at an end.
  bool HasReader() const {
    pollfd one{this->socket(), POLLOUT | POLLRDHUP, 0};
    return ::poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
  }
};

// A request that is read already, and a socket that is written to.
class HeadStream final : public AnyStream<httplib::Stream> {
 public:
  HeadStream(std::string head, int socket) : head_(std::move(head)), socket_(socket) {}

  bool is_readable() const override { return at_ < head_.size(); }
  ssize_t read(char* to, size_t size) override {
    const size_t n = std::min(size, head_.size() - at_);
    std::copy_n(head_.data() + at_, n, to);
    at_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, size_t size) override {
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
};

std::string Refusal(int status, std::string_view reason, const std::string& more = {}) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: "
      "close\r\n{}\r\n{}\n",
      status, reason, reason.size() + 1, more, reason);
}

}  // namespace

class SiteServer::Impl final : public httplib::Server {
 public:
  Impl(Site& site, ServerOptions options) : site_(site), options_(std::move(options)) {
    new_task_queue = [this] { return new BoundedQueue(kThreads, kWaiting, stopping_); };
    set_tcp_nodelay(true);
    // The library's own choice would let other programs of this user listen on the same port.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    // Before the library looks for a handler by patterns: there are none.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Handle(request, response);
      return HandlerResponse::Handled;
    });
  }

  void Bind() {
    const ListenAddress& listen = options_.listen;
    port_ = listen.port == 0 ? bind_to_any_port(listen.host) : listen.port;
    if (port_ < 0 || (listen.port != 0 && !bind_to_port(listen.host, listen.port))) {
      ThrowErrno(fmt::format("cannot listen on {} port {}", listen.host, listen.port),
                 "another program may be there; --listen names another address, and port 0 is any that is free");
    }
  }

  int port() const { return port_; }

  void RunUntil(const std::function<bool()>& stop) {
    std::atomic<bool> ended = false;
    std::thread listening([&] {
      listen_after_bind();
      ended = true;
    });
    while (!stop() && !ended) std::this_thread::sleep_for(kTick);
    const bool failed = ended;
    stopping_ = true;
    // A server that has not begun yet does not know that it is to stop.
    while (!ended) {
      this->stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    listening.join();
    if (failed) throw Error(ErrorKind::kInfrastructure, "the server's socket failed", "start it again");
  }

 private:
  // Instead of the library's own reading, which bounds neither a request's headers nor the time that they take.
  bool process_and_close_socket(socket_t socket) override {
    const std::optional<std::string> head = stopping_ ? std::nullopt : ReadHead(socket);
    if (head) {
      if (const std::optional<std::string> plain = PlainHead(*head)) {
        HeadStream stream(*plain, socket);
        Process(*this, stream);
      } else {
        WriteSocket(socket, Refusal(400, "not a request that is understood here"));
      }
    } else if (!stopping_) {
      WriteSocket(socket, Refusal(408, "no whole request came, or one that is too long"));
    }
    CloseGently(socket);
    return true;
  }

  // As the library's version has it.
  static void Process(auto& self, HeadStream& stream) {
    bool closed = false;
    if constexpr (requires { self.process_request(stream, true, closed, nullptr); }) {
      self.process_request(stream, true, closed, nullptr);
    } else {
      self.process_request(stream, "", 0, "", 0, true, closed, nullptr);
    }
  }

  // Nothing where the request may be answered.
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
    response.set_header("Cache-Control", "no-store");
    if (Refused(request, response)) return;
    PageRequest asked;
    asked.path = request.path;
    asked.accept = request.get_header_value("Accept");
    for (const auto& [name, value] : request.params) asked.query.emplace_back(name, value);
    if (asked.path == "/events" && request.method == "GET") return Stream(asked.Value("sweep"), response);
    const PageAnswer answer = site_.Answer(asked);
    response.status = answer.status;
    if (!answer.policy.empty()) response.set_header("Content-Security-Policy", answer.policy);
    if (!answer.file_name.empty()) {
      std::string name;
      for (const char c : answer.file_name) {
        name += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ? c : '-';
      }
      response.set_header("Content-Disposition", "attachment; filename=\"" + name + "\"");
    }
    response.set_content(answer.body, answer.type);
  }

  // Server-sent events: the element `live` anew whenever it changes.
  void Stream(const std::string& sweep, httplib::Response& response) {
    if (streams_.fetch_add(1) >= kStreams) {
      --streams_;
      response.status = 503;
      response.set_header("Retry-After", "10");
      response.set_content("so many watch already\n", "text/plain; charset=utf-8");
      return;
    }
    struct Told {
      std::string last;
      std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
      std::chrono::steady_clock::time_point said{};
    };
    const auto told = std::make_shared<Told>();
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, sweep, told](size_t /*offset*/, httplib::DataSink& sink) {
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
        },
        [this](bool /*success*/) { --streams_; });
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
  std::atomic<bool> stopping_ = false;
  std::atomic<int> streams_ = 0;
};

SiteServer::SiteServer(Site& site, ServerOptions options) : impl_(std::make_unique<Impl>(site, std::move(options))) {
  impl_->Bind();
}
SiteServer::~SiteServer() = default;

int SiteServer::port() const { return impl_->port(); }

void SiteServer::Run(const std::function<bool()>& stop) { impl_->RunUntil(stop); }

}  // namespace ridgeline
