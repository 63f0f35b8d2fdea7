// Launchers with one fault each. The build chooses the fault.
#include <cstdlib>
#include <cstring>
#include <string>

#include "ridgeline/launcher.h"

namespace {

[[maybe_unused]] int Reply(const std::string& text, char** reply, size_t* reply_size, int failed = 0) {
  *reply = static_cast<char*>(std::malloc(text.size()));
  std::memcpy(*reply, text.data(), text.size());
  *reply_size = text.size();
  return failed;
}

[[maybe_unused]] int Opens(const char*, size_t, ridgeline_launcher_session** session, char** reply,
                           size_t* reply_size) {
#if defined(BAD_OPEN)
  *session = nullptr;
  return Reply(R"({"kind": "invalid_input", "message": "no such setting", "hint": "there are two"})", reply, reply_size,
               1);
#elif defined(BAD_SESSION)
  *session = nullptr;
  return Reply(R"({"capabilities": []})", reply, reply_size);
#else
  static int thing = 0;
  *session = reinterpret_cast<ridgeline_launcher_session*>(&thing);
  return Reply(R"({"capabilities": ["render", "flight"]})", reply, reply_size);
#endif
}

[[maybe_unused]] int Nothing(ridgeline_launcher_session*, const char*, size_t, char** reply, size_t*) {
  *reply = nullptr;
  return 0;
}
[[maybe_unused]] int NotJson(ridgeline_launcher_session*, const char*, size_t, char** reply, size_t* reply_size) {
  return Reply("{\"jobs\": [", reply, reply_size);
}
[[maybe_unused]] int NoAnswer(ridgeline_launcher_session*, const char*, size_t, char** reply, size_t* reply_size) {
  return Reply(R"({"jobs": [{"key": "another", "state": "ended"}]})", reply, reply_size);
}
[[maybe_unused]] int NotAName(ridgeline_launcher_session*, const char*, size_t, char** reply, size_t* reply_size) {
  return Reply(R"({"files": [{"name": "../escape.sh", "content": ""}]})", reply, reply_size);
}
[[maybe_unused]] int NotADescription(const char*, size_t, char** reply, size_t* reply_size) {
  return Reply(R"({"memory_bytes": "much"})", reply, reply_size);
}
[[maybe_unused]] int Refuses(ridgeline_launcher_session*, const char*, size_t, char** reply, size_t* reply_size) {
  return Reply(R"({"kind": "usage", "message": "no such partition", "hint": "see sinfo"})", reply, reply_size, 1);
}

}  // namespace

#if defined(BAD_NO_SYMBOL)
extern "C" __attribute__((visibility("default"))) int another_symbol();
int another_symbol() { return 0; }
#else
extern "C" __attribute__((visibility("default"))) const ridgeline_launcher_table* ridgeline_launcher(uint32_t);
const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
#if defined(BAD_NO_TABLE)
  return nullptr;
#else
  static ridgeline_launcher_table table = {RIDGELINE_LAUNCHER_ABI_VERSION,
                                           sizeof(ridgeline_launcher_table),
                                           "babbling",
                                           "1",
                                           Opens,
                                           [](ridgeline_launcher_session*) {},
                                           Nothing,
                                           NotAName,
                                           NotJson,
                                           NoAnswer,
                                           Refuses,
                                           [](char* reply) { std::free(reply); },
                                           NotADescription};
#if defined(BAD_ABI)
  table.abi_version = BAD_ABI;
#elif defined(BAD_SIZE)
  table.table_size = 16;
#elif defined(BAD_NULL)
  table.poll_many = nullptr;
#elif defined(BAD_NAME)
  table.name = "somebody-else";
#elif defined(BAD_OPEN)
  table.name = "bad-open";
#elif defined(BAD_SESSION)
  table.name = "no-session";
#endif
  return &table;
#endif
}
#endif
