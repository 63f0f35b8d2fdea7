// What every launcher plugin needs at its C boundary: documents in, documents out, no exception across it.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace ridgeline::plugin {

using Json = nlohmann::json;

// What a call answers when it was not done.
class Failure : public std::exception {
 public:
  enum class Kind { kUsage, kInvalidInput, kInfrastructure };

  Failure(Kind kind, std::string message, std::string hint = {})
      : kind_(kind), message_(std::move(message)), hint_(std::move(hint)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  Json ToJson() const {
    const char* names[] = {"usage", "invalid_input", "infrastructure"};
    return {{"kind", names[static_cast<int>(kind_)]}, {"message", message_}, {"hint", hint_}};
  }

 private:
  Kind kind_;
  std::string message_;
  std::string hint_;
};

// One call of the table: `answer` maps the request document to the reply document, and may throw.
template <typename Answer>
int Serve(const char* request, size_t request_size, char** reply, size_t* reply_size, Answer answer) noexcept {
  *reply = nullptr;
  *reply_size = 0;
  try {
    int failed = 1;
    Json document;
    try {
      document = answer(Json::parse(request, request + request_size));
      failed = 0;
    } catch (const Failure& e) {
      document = e.ToJson();
    } catch (const Json::exception& e) {
      document = Failure(Failure::Kind::kInvalidInput, std::string("a request it cannot read: ") + e.what()).ToJson();
    } catch (const std::exception& e) {
      document = Failure(Failure::Kind::kInfrastructure, e.what()).ToJson();
    }
    const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    *reply = static_cast<char*>(std::malloc(text.size()));
    if (*reply == nullptr) return 1;
    std::memcpy(*reply, text.data(), text.size());
    *reply_size = text.size();
    return failed;
  } catch (...) {  // no memory even for the answer: a null reply says so
    return 1;
  }
}

inline void Free(char* reply) { std::free(reply); }

}  // namespace ridgeline::plugin
