// Commands end properly when threads do not start, for example with a low `ulimit -u`.
#include <gmock/gmock.h>

#include "tests/torture/torture.h"

namespace ridgeline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NoThreads, PredictDoesItsWorkWithoutHelpers) {
  cli::Cli cli;
  FaultyMachine machine(cli.dir.path());
  cli.prefix = machine.Prefix();
  machine.faults().not_starting = 1000;
  const auto sweep = cli.dir.path() / "sweep.yaml";
  std::ofstream(sweep) << "name: test\ndefaults: {model: llama-10m}\nmatrix: {batch_size: 1..4}\n";
  const cli::Cli::Output predicted = cli.Run({"predict", sweep.string(), "--device", "h100", "-o", "csv"});
  EXPECT_TRUE(predicted.status.ok()) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("4 of 4 points predicted"));
}

TEST(NoThreads, ServeSaysWhatDoesNotStart) {
  cli::Cli cli;
  FaultyMachine machine(cli.dir.path());
  ASSERT_TRUE(cli.Run({"run", cli.WriteSweep(1, "ok").string()}).status.ok());
  cli.prefix = machine.Prefix();
  for (const uint32_t per_mille : {1000U, 500U, 500U, 500U}) {  // all, and some of several
    machine.faults().not_starting = per_mille;
    Child server = cli.Start({"serve", "--listen", "127.0.0.1:0"});
    const auto said = [&] { return ReadFileIfThere(cli.dir.path() / "out").value_or(""); };
    EXPECT_TRUE(Eventually([&] { return server.Poll() || said().find("Ctrl-C") != std::string::npos; }));
    if (per_mille < 1000U) server.Signal(SIGTERM);  // the server may be ending by itself already
    const cli::Cli::Output served = cli.Finish(server);
    EXPECT_NE(served.status.signal, SIGABRT) << served.err;
    EXPECT_THAT(served.err, Not(HasSubstr("internal error")));
    if (per_mille == 1000U) {
      EXPECT_EQ(served.status.exit_code, 3) << served.err;
      EXPECT_THAT(served.err, HasSubstr("cannot start a thread"));
    }
  }
}

}  // namespace
}  // namespace ridgeline::testing
