#include "serve/health.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "serve/site.h"
#include "store/store.h"

namespace ridgeline::serve {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kAskEvery = std::chrono::seconds(1);
constexpr auto kHealthPatience = std::chrono::seconds(3);
constexpr auto kLastPatience = std::chrono::seconds(10);

std::string Ask(const std::filesystem::path& db) {
  try {
    store::Store store = store::Store::Open(db, store::Store::Mode::kReadOnly, {}, Site::kLimits);
    // Reads one row of each table that pages begin with, and no more.
    store.Query("SELECT (SELECT number FROM results LIMIT 1), (SELECT name FROM sweeps LIMIT 1)");
    return {};
  } catch (const Error& e) {
    return e.message() + (e.hint().empty() ? "" : ": " + e.hint());
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

struct Health::State {
  std::filesystem::path db;
  // Guards the members below.
  std::mutex mutex;
  std::condition_variable changed;
  bool asks = false;  // a thread is asking the database
  SteadyClock::time_point began = {};
  SteadyClock::time_point ended = {};  // when the last answer came
  bool answered = false;
  std::string trouble;
};

Health::Health(std::filesystem::path db) : state_(std::make_shared<State>()) { state_->db = std::move(db); }

Health::~Health() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, kLastPatience, [&] { return !state_->asks; });
}

std::string Health::Trouble() {
  std::unique_lock lock(state_->mutex);
  const auto now = SteadyClock::now();
  if (!state_->asks && state_->answered && now - state_->ended < kAskEvery) return state_->trouble;
  if (!state_->asks) {
    // The thread owns what it needs, because nobody can wait for it if the disk hangs.
    try {
      std::thread([state = state_] {
        std::string trouble = Ask(state->db);
        const std::lock_guard answered(state->mutex);
        state->trouble = std::move(trouble);
        state->asks = false;
        state->answered = true;
        state->ended = SteadyClock::now();
        state->changed.notify_all();
      }).detach();
    } catch (const std::system_error& e) {
      return "cannot start a thread to ask the database: " + e.code().message();
    }
    state_->asks = true;  // the thread waits for the lock before it says that it has asked
    state_->began = now;
  }
  const bool answered = state_->changed.wait_for(lock, kHealthPatience, [&] { return !state_->asks; });
  if (answered) return state_->trouble;
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - state_->began).count();
  return fmt::format("{} has not answered for {} s: its disk may hang", state_->db.string(), since);
}

}  // namespace ridgeline::serve
