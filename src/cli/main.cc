// ridgeline: plans, runs and reports sweeps. See commands.cc for what it can do.
#include <cstdio>
#include <exception>
#include <new>

#include <fmt/format.h>

#include "base/error.h"
#include "base/process.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  using ridgeline::Error;
  using ridgeline::ErrorKind;
  ridgeline::OpenStandardStreams();
  try {
    const int exit_code = ridgeline::ParseCommandLine(argc, argv)();
    if (std::fflush(stdout) != 0) ridgeline::ThrowErrno("cannot write to the standard output");
    return exit_code;
  } catch (const Error& e) {
    std::fflush(stdout);  // which says what came before
    fmt::print(stderr, "ridgeline: {}\n", e.what());
    return ridgeline::ExitCode(e.kind());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "ridgeline: this machine has too little memory free for that\n");
    return ridgeline::ExitCode(ErrorKind::kOutOfMemory);
  } catch (const std::exception& e) {
    fmt::print(stderr, "ridgeline: a fault of its own: {}\n", e.what());
    return ridgeline::ExitCode(ErrorKind::kInternal);
  }
}
