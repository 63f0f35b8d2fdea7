// Serves the site over HTTP. Checks access first. Requests, threads and their memory are bounded. The only wrapper of
// cpp-httplib, which parses complete requests and writes answers' headers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/access.h"
#include "serve/site.h"

namespace ridgeline::serve {

struct ServerOptions {
  ListenAddress listen;
  std::string token;               // required from every client; empty: none. REQUIRES: a token if it is not loopback
  std::vector<std::string> names;  // host names by which it is known, beside localhost
  std::string base_path = {};      // the prefix that a proxy puts before every path: "/ridgeline"; empty: none
};

class SiteServer {
 public:
  // Requests that run at once, each on its own thread: for pages, for reports, for metrics, for /healthz, and for
  // browsers that receive live updates. For all kinds but the last, kWaiting more may wait for a thread. One report is
  // made at once (Site); the other threads for reports wait for it, or answer with reports that are kept.
  static constexpr size_t kPages = 6;
  static constexpr size_t kReports = 4;
  static constexpr size_t kScrapes = 2;
  static constexpr size_t kHealth = 2;
  static constexpr size_t kStreams = 8;
  static constexpr size_t kWaiting = 64;

  // Listens now; Run answers. Throws Error(kInfrastructure) if it cannot listen. `site` must outlive it.
  SiteServer(Site& site, ServerOptions options);
  ~SiteServer();
  SiteServer(const SiteServer&) = delete;
  SiteServer& operator=(const SiteServer&) = delete;

  int port() const;
  // Answers until `stop` returns true, which is called ten times a second, and then finishes requests that have begun.
  // If some do not end within ten seconds, as when the database's disk hangs, calls `give_up`, which should end the
  // process. Without `give_up`, waits for them. Throws Error(kInfrastructure) if the server ends early.
  void Run(const std::function<bool()>& stop, const std::function<void()>& give_up = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ridgeline::serve
