#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "serve/access.h"
#include "serve/server.h"
#include "serve/site.h"
#include "session/defaults.h"
#include "session/interrupts.h"
#include "session/say.h"
#include "session/session.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr int kArenas = 2;

struct ServeCommandOptions {
  std::string db = session::kDefaultDb;
  std::string listen = "127.0.0.1:8320";
  std::string token_file;
  std::vector<std::string> names;
  std::string reports;
  std::string base_path = "/";
};

std::string AddressShown(const std::string& host, int port) {
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return fmt::format("http://{}:{}/", shown, port);
}

int Serve(const ServeCommandOptions& options) {
  serve::ServerOptions server;
  server.listen = serve::ParseListenAddress(options.listen);
  server.names = options.names;
  server.base_path = serve::ParseBasePath(options.base_path);
  if (!options.token_file.empty()) server.token = serve::ReadTokenFile(options.token_file);
  if (server.token.empty() && !serve::IsLoopback(server.listen.host)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("serve: others reach {}, and everybody could read what is measured", options.listen),
                "give a token (--token-file FILE, made by `openssl rand -hex 32`), or listen on 127.0.0.1 and reach "
                "it by `ssh -L`");
  }
  if (!fs::exists(options.db)) {
    session::SayAside("ridgeline: there is no database {} yet: pages say so until `ridgeline run` makes it\n",
                      options.db);
  }
  // Otherwise each thread's arena would keep the memory of the largest page that it ever made.
  ::mallopt(M_ARENA_MAX, kArenas);
  SystemClock clock;
  serve::Site site(options.db, session::ReportFoldersFor(options.reports, ""), clock, server.base_path);
  const session::Interrupts interrupts;
  serve::SiteServer listening(site, server);
  session::Say("{} shows {}; Ctrl-C ends it\n", AddressShown(server.listen.host, listening.port()), options.db);
  std::fflush(stdout);  // the starting program may wait for this line
  listening.Run([] { return session::Interrupts::Count() > 0; },
                [&] {
                  session::SayAside("ridgeline: {} still does not answer, and is not waited for\n", options.db);
                  std::_Exit(0);
                });
  return 0;
}

}  // namespace

Action ServeCommand(CLI::App& self) {
  const auto options = std::make_shared<ServeCommandOptions>();
  self.add_option("--listen", options->listen, "an IP address and a port; port 0 takes any free port")
      ->capture_default_str()
      ->type_name("ADDRESS:PORT");
  self.add_option("--db", options->db, "the results database")->capture_default_str()->type_name("FILE");
  self.add_option("--token-file", options->token_file,
                  "a file, readable by you alone, with the token that everybody must give")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  self.add_option("--name", options->names, "a host name for it, beside localhost; repeatable")
      ->type_name("HOST")
      ->allow_extra_args(false);
  self.add_option("--base-path", options->base_path, "the path that a proxy puts before every address")
      ->capture_default_str()
      ->type_name("PATH");
  AddReportsOption(self, options->reports);
  self.footer(
      "Shows what runs now, every run with its log and evidence, histories over commits, comparisons and "
      "reports, and /metrics for Prometheus. It changes nothing: each request opens the database read-only,"
      " also while runs are at work.\n\n"
      "It listens on this machine alone. Another --listen address needs --token-file: Prometheus sends the "
      "token as a bearer token, and a browser asks for it as the password of any user. The pages are plain "
      "HTTP. Across a network, use `ssh -L` or a proxy with TLS.\n\n"
      "Examples:\n"
      "  ridgeline serve\n"
      "  ridgeline serve --db /data/ridgeline.db --listen 127.0.0.1:9000\n"
      "  ridgeline serve --listen 0.0.0.0:8320 --token-file token --name bench.org\n"
      "  ridgeline serve --base-path /ridgeline");
  return [options] { return Serve(*options); };
}

}  // namespace ridgeline::cli
