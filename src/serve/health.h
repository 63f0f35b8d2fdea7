// Checks whether the database answers, so that a caller waits only briefly.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace ridgeline::serve {

// Thread safety: all of it.
class Health {
 public:
  explicit Health(std::filesystem::path db);
  // Waits some seconds for a pending question.
  ~Health();
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  // Why the database does not answer; empty if it does. It is asked at most once a second, by one thread, which is left
  // behind if a disk hangs.
  std::string Trouble();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace ridgeline::serve
