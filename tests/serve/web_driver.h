// Drives a browser over WebDriver (W3C): Debian's Chromium, with its chromedriver.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/port.h"
#include "base/process.h"
#include "tests/base/eventually.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::testing {

class WebDriver {
 public:
  WebDriver() {
    SpawnOptions options;
    options.stdout_file = dir_ / "chromedriver";
    options.stderr_file = dir_ / "chromedriver";
    options.new_process_group = true;
    options.die_with_parent = true;
    driver_ = Child::Spawn({"chromedriver", "--port=" + std::to_string(port_.number())}, options);
    EXPECT_TRUE(Eventually([&] {
      const auto status = Client().Get("/status");
      return status && status->body.find("\"ready\":true") != std::string::npos;
    })) << ReadFile(dir_ / "chromedriver");
    const Json chrome = {
        {"args",
         {"--headless=new", "--hide-scrollbars", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
          "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
          "--user-data-dir=" + (dir_ / "profile").string()}}};
    const Json session =
        Post("/session",
             {{"capabilities",
               {{"alwaysMatch",
                 {{"browserName", "chrome"},
                  {"timeouts", {{"script", 110'000}}},  // ms: on a busy machine the audit of a long page takes so long
                  {"goog:chromeOptions", chrome},
                  {"goog:loggingPrefs", {{"browser", "ALL"}}}}}}}});
    session_ = "/session/" + session.value("sessionId", "");
    EXPECT_NE(session_, "/session/") << session.dump();
    // Only an active window shows the focus, and Chromium's releases differ in whether a headless one is active.
    DevTools("Emulation.setFocusEmulationEnabled", {{"enabled", true}});
  }
  ~WebDriver() {
    Client().Delete(session_);
    driver_->Signal(SIGTERM);
    driver_->Wait();
  }
  WebDriver(const WebDriver&) = delete;
  WebDriver& operator=(const WebDriver&) = delete;

  void Go(const std::string& address) { Post(session_ + "/url", {{"url", address}}); }
  std::string Address() { return Get(session_ + "/url"); }
  std::string Title() { return Get(session_ + "/title"); }
  void Back() { Post(session_ + "/back", Json::object()); }
  void Resize(int width, int height) { Post(session_ + "/window/rect", {{"width", width}, {"height", height}}); }

  // The result of a script. The driver runs it, not the page, whose policy does not apply to it.
  Json Script(const std::string& script, const Json& arguments = Json::array()) {
    return Post(session_ + "/execute/sync", {{"script", script}, {"args", arguments}});
  }
  // The same for a script that passes its result to its last argument, a function.
  Json ScriptThatAnswers(const std::string& script) {
    return Post(session_ + "/execute/async", {{"script", script}, {"args", Json::array()}});
  }
  // Shows the page in a window of this width, or on paper, in the colour scheme "light" or "dark".
  void Look(int width, const std::string& scheme, const std::string& media = "screen") {
    DevTools("Emulation.setDeviceMetricsOverride",
             {{"width", width}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", false}});
    DevTools("Emulation.setEmulatedMedia",
             {{"media", media}, {"features", {{{"name", "prefers-color-scheme"}, {"value", scheme}}}}});
  }
  // The visible text of the first element for the selector; nothing if there is none.
  std::optional<std::string> Text(const std::string& selector) {
    const Json text =
        Script("const e = document.querySelector(" + Json(selector).dump() + "); return e ? e.innerText : null");
    return text.is_string() ? std::optional(text.get<std::string>()) : std::nullopt;
  }
  bool Shows(const std::string& words) {
    const auto text = Text("body");
    return text && text->find(words) != std::string::npos;
  }
  // Clicks as a person does: only visible elements can be clicked.
  void Click(const std::string& selector) { ClickFound("css selector", selector); }
  // The same for an element that leads to another page, and waits for that page: a form's page may come after the click
  // is answered.
  void Follow(const std::string& selector) { FollowFound("css selector", selector); }
  void FollowLink(const std::string& words) { FollowFound("link text", words); }

  // The page's messages to its console, for example what its policy blocked.
  std::string Console() { return Post(session_ + "/se/log", {{"type", "browser"}}).dump(); }

 private:
  void FollowFound(const std::string& by, const std::string& what) {
    Script("window.left = false");
    ClickFound(by, what);
    EXPECT_TRUE(Eventually([&] {
      return Script("return window.left === undefined && document.readyState === 'complete'") == true;
    })) << what
        << " leads nowhere";
  }
  void ClickFound(const std::string& by, const std::string& what) {
    const Json element = Post(session_ + "/element", {{"using", by}, {"value", what}});
    ASSERT_TRUE(element.is_object() && !element.empty() && element.begin()->is_string()) << "no " << what;
    Post(session_ + "/element/" + element.begin()->get<std::string>() + "/click", Json::object());
  }

  void DevTools(const std::string& command, const Json& parameters) {
    Post(session_ + "/goog/cdp/execute", {{"cmd", command}, {"params", parameters}});
  }

  httplib::Client Client() const {
    httplib::Client client("127.0.0.1", static_cast<int>(port_.number()));
    client.set_read_timeout(120);
    return client;
  }
  Json Post(const std::string& path, const Json& body) {
    const auto answer = Client().Post(path, body.dump(), "application/json");
    EXPECT_TRUE(answer) << path;
    if (!answer) return {};
    EXPECT_EQ(answer->status, 200) << path << answer->body;
    return ParseJson(answer->body, "chromedriver").value("value", Json());
  }
  std::string Get(const std::string& path) {
    const auto answer = Client().Get(path);
    EXPECT_TRUE(answer && answer->status == 200) << path;
    return answer ? ParseJson(answer->body, "chromedriver").value("value", "") : "";
  }

  TempDir dir_;
  ReservedPort port_;
  std::optional<Child> driver_;
  std::string session_;
};

}  // namespace ridgeline::testing
