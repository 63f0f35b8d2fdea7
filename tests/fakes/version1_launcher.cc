// A launcher of the first ABI, which had no sessions, as a user may still have one: compiled with that header's table.
#include <cstdint>
#include <cstdlib>

namespace {

using Call = int (*)(const char* request, size_t request_size, char** reply, size_t* reply_size);

struct Table {
  uint32_t abi_version;
  uint32_t table_size;
  const char* name;
  const char* version;
  Call probe, render, submit, poll_many, cancel;
  void (*free)(char* reply);
};

int MustNotBeCalled(const char*, size_t, char**, size_t*) { std::abort(); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const Table* ridgeline_launcher(uint32_t);

const Table* ridgeline_launcher(uint32_t) {
  static const Table table = {1,
                              sizeof(Table),
                              "version1",
                              "1",
                              MustNotBeCalled,
                              MustNotBeCalled,
                              MustNotBeCalled,
                              MustNotBeCalled,
                              MustNotBeCalled,
                              [](char*) { std::abort(); }};
  return &table;
}
