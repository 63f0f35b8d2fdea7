// A launcher's session with requests and answers as documents, as its plugin has them.
#pragma once

#include <memory>
#include <utility>

#include "common/answers.h"

namespace ridgeline::testing {

template <typename Session>
class Answering {
 public:
  explicit Answering(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  plugin::Json Submit(const plugin::Json& jobs) { return ToJson(plugin::KeysOf(jobs), session_->Submit(jobs)); }
  plugin::Json Poll(const plugin::Json& jobs) {
    return ToJson(plugin::KeysOf(jobs), session_->Poll(plugin::KeysOf(jobs)));
  }
  plugin::Json Cancel(const plugin::Json& jobs) {
    return ToJson(plugin::KeysOf(jobs), session_->Cancel(plugin::KeysOf(jobs)));
  }

 private:
  std::unique_ptr<Session> session_;
};

}  // namespace ridgeline::testing
