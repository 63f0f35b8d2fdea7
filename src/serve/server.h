// The site over HTTP: who may ask is looked at first, and neither requests, threads nor their memory grow without
// bounds. The one wrapper of cpp-httplib.
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
};

class SiteServer {
 public:
  // Requests at once, each on a thread of its own; those that wait for one, before more are left to the kernel; and of
  // the threads, those that tell browsers what is live.
  static constexpr size_t kThreads = 16;
  static constexpr size_t kWaiting = 64;
  static constexpr int kStreams = 8;

  // Listens, and answers once it runs. Throws Error(kInfrastructure) where it cannot. `site` must outlive it.
  SiteServer(Site& site, ServerOptions options);
  ~SiteServer();
  SiteServer(const SiteServer&) = delete;
  SiteServer& operator=(const SiteServer&) = delete;

  int port() const;
  // Answers until `stop` says so, which is asked ten times a second. Throws Error(kInfrastructure) where it ends
  // before.
  void Run(const std::function<bool()>& stop);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ridgeline
