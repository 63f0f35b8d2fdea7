// The site over HTTP: who may ask is looked at first, and neither requests, threads nor their memory grow without
// bounds. The one wrapper of cpp-httplib, which reads requests that have come whole, and writes answers' headers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/access.h"
#include "serve/site.h"

namespace ridgeline {

struct ServerOptions {
  ListenAddress listen;
  std::string token;               // asked of everybody; empty: of nobody. REQUIRES: a token where it is no loopback
  std::vector<std::string> names;  // other than localhost, by which it is known
  std::string base_path = {};      // what a proxy has before every path: "/ridgeline"; empty: nothing
};

class SiteServer {
 public:
  // Requests at once, each on a thread of its own: for pages, for metrics, for /healthz, and of browsers that are told
  // what is live. Of each kind but the last so many more wait for a thread.
  static constexpr size_t kPages = 6;
  static constexpr size_t kScrapes = 2;
  static constexpr size_t kHealth = 2;
  static constexpr size_t kStreams = 8;
  static constexpr size_t kWaiting = 64;

  // Listens, and answers once it runs. Throws Error(kInfrastructure) where it cannot. `site` must outlive it.
  SiteServer(Site& site, ServerOptions options);
  ~SiteServer();
  SiteServer(const SiteServer&) = delete;
  SiteServer& operator=(const SiteServer&) = delete;

  int port() const;
  // Answers until `stop` says so, which is asked ten times a second, and then ends what was begun. Where some request
  // does not end within ten seconds, as when the disk of the database hangs, `give_up` is called, which is to end the
  // process; without one they are waited for. Throws Error(kInfrastructure) where the server ends before.
  void Run(const std::function<bool()>& stop, const std::function<void()>& give_up = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ridgeline
