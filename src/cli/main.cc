// ridgeline: plans, runs and reports sweeps. commands.cc lists its commands.
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "base/error.h"
#include "base/system_words.h"
#include "cli/commands.h"
#include "ridgeline/standard_streams.h"
#include "session/error_file.h"
#include "session/say.h"

int main(int argc, char** argv) {
  using ridgeline::Error;
  using ridgeline::ErrorKind;
  ridgeline::OpenStandardStreams();
  const ridgeline::session::ErrorFile error_file;
  try {
    const int exit_code = ridgeline::cli::ParseCommandLine(argc, argv)();
    if (std::fflush(stdout) != 0) ridgeline::ThrowErrno("cannot write to the standard output");
    return exit_code;
  } catch (const Error& e) {
    std::fflush(stdout);  // prints the earlier output first
    error_file.Write(e);
    ridgeline::session::WriteAside("ridgeline: " + ridgeline::PrintableText(e.what()) + "\n");
    return ridgeline::ExitCode(e.kind());
  } catch (const std::bad_alloc&) {
    ridgeline::session::SayAside("ridgeline: this machine has too little memory free for that\n");
    return ridgeline::ExitCode(ErrorKind::kOutOfMemory);
  } catch (const std::system_error& e) {  // from the standard library, if no caller handles it
    ridgeline::session::WriteAside("ridgeline: " + ridgeline::PrintableText(ridgeline::SystemErrorWords(e)) + "\n");
    return ridgeline::ExitCode(ErrorKind::kInfrastructure);
  } catch (const std::exception& e) {
    ridgeline::session::SayAside("ridgeline: internal error: {}\n", e.what());
    return ridgeline::ExitCode(ErrorKind::kInternal);
  }
}
