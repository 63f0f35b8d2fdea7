// Whether the database answers, asked so that whoever waits for it waits for a moment at most.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace ridgeline {

// Thread safety: all of it.
class Health {
 public:
  explicit Health(std::filesystem::path db);
  // Waits some seconds for a question that was asked and has no answer.
  ~Health();
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  // Why the database does not answer; empty: it does. It is asked at most once a second, and by one thread, which stays
  // behind where a disk hangs.
  std::string Trouble();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace ridgeline
