// What every launcher plugin needs at its C boundary: documents in, documents out, no exception across it.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "ridgeline/launcher.h"

namespace ridgeline::plugin {

using Json = nlohmann::json;

// What a call answers when it was not done.
class Failure : public std::exception {
 public:
  enum class Kind {
    kUsage,
    kInvalidInput,
    kInfrastructure,
    kNotNow,  // infrastructure, and asking again later may help
  };

  Failure(Kind kind, std::string message, std::string hint = {})
      : kind_(kind), message_(std::move(message)), hint_(std::move(hint)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  Kind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }
  Json ToJson() const {
    const char* names[] = {"usage", "invalid_input", "infrastructure", "infrastructure"};
    Json document = {{"kind", names[static_cast<int>(kind_)]}, {"message", message_}, {"hint", hint_}};
    if (kind_ == Kind::kNotNow) document["retry"] = true;
    return document;
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

template <Json (*kAnswer)(const Json&)>
int Call(const char* request, size_t request_size, char** reply, size_t* reply_size) {
  return Serve(request, request_size, reply, reply_size, kAnswer);
}

// One answer a job; a job that fails does not fail the others.
template <typename Each>
Json AnswerEach(const Json& request, Each each) {
  Json answers = Json::array();
  for (const Json& job : request.at("jobs")) {
    Json answer = each(job);
    answer["key"] = job.at("key");
    answers.push_back(std::move(answer));
  }
  return {{"jobs", std::move(answers)}};
}

inline void Free(char* reply) { std::free(reply); }

using Answer = Json (*)(const Json&);

// The table of a launcher of this name, of its answers to the five calls.
template <Answer kProbe, Answer kRender, Answer kSubmit, Answer kPollMany, Answer kCancel>
const ridgeline_launcher_table* Table(const char* name) {
  static const ridgeline_launcher_table table = {RIDGELINE_LAUNCHER_ABI_VERSION,
                                                 sizeof(ridgeline_launcher_table),
                                                 name,
                                                 "1",
                                                 Call<kProbe>,
                                                 Call<kRender>,
                                                 Call<kSubmit>,
                                                 Call<kPollMany>,
                                                 Call<kCancel>,
                                                 Free};
  return &table;
}

}  // namespace ridgeline::plugin
