// Installs what was built into a folder of its own and uses it from another, as a person who installed it would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr char kSweep[] = R"(name: installed
defaults: {family: llama, layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 64, precision: fp32, seq_length: 16}
matrix:
  checkpointing: [none, full]
measure: {warmup_steps: 1, steps: 2, repeats: 1}
launch: {launcher: local}
report: [activation-checkpointing]
)";

class Install : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    prefix_ = new TempDir;
    const Captured installed =
        ridgeline::Run({"cmake", "--install", RIDGELINE_BINARY_DIR, "--prefix", prefix_->path().string()});
    ASSERT_TRUE(installed.status.ok()) << installed.stderr_text;
  }
  static void TearDownTestSuite() {
    delete prefix_;
    prefix_ = nullptr;
  }

  void SetUp() override {
    ::unsetenv("RIDGELINE_HOME");
    before_ = fs::current_path();
    fs::current_path(elsewhere_.path());
    WriteFileAtomic("sweep.yaml", kSweep);
  }
  void TearDown() override { fs::current_path(before_); }

  static fs::path Prefix() { return prefix_->path(); }

  // What the installed `ridgeline` prints. It must succeed.
  static std::string Ridgeline(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), (Prefix() / "bin/ridgeline").string());
    const Captured captured = ridgeline::Run(arguments, int64_t{300'000'000'000});
    EXPECT_TRUE(captured.status.ok()) << Describe(captured.status) << "\n"
                                      << captured.stdout_text << captured.stderr_text;
    return captured.stdout_text;
  }

 private:
  static TempDir* prefix_;
  TempDir elsewhere_;
  fs::path before_;
};

TempDir* Install::prefix_ = nullptr;

TEST_F(Install, PutsEverythingInItsPlace) {
  for (const char* path :
       {"bin/ridgeline", "bin/ridgeline-train", "lib/ridgeline/plugins/ridgeline-launcher-local.so",
        "share/ridgeline/sweeps/demo.yaml", "share/ridgeline/reports/activation-checkpointing/query.sql",
        "share/ridgeline/trainers/nanogpt.yaml", "share/ridgeline/devices/p5.yaml",
        "share/ridgeline/metrics/grafana.json", "share/ridgeline/metrics/alerts.yaml",
        "share/ridgeline/docs/trainer-contract.md", "share/ridgeline/kubernetes/driver-role.yaml",
        "share/ridgeline/kubernetes/nightly.yaml", "share/ridgeline/kubernetes/Containerfile.cuda",
        "share/bash-completion/completions/ridgeline", "share/zsh/site-functions/_ridgeline",
        "share/fish/vendor_completions.d/ridgeline.fish"}) {
    EXPECT_TRUE(fs::is_regular_file(Prefix() / path)) << path;
  }
}

// The files of a kind below a folder.
std::vector<fs::path> FilesWith(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == extension) files.push_back(entry.path());
  }
  return files;
}

// A page without the sources beside it leads nowhere else.
TEST_F(Install, EachLinkOfThePagesLeadsToAFile) {
  const std::vector<fs::path> pages = FilesWith(Prefix() / "share/ridgeline", ".md");
  ASSERT_THAT(pages.size(), testing::Ge(30));
  static const std::regex link("\\]\\(([^)#\\s]+)(#[^)\\s]*)?\\)");
  static const std::regex elsewhere("^[a-z]+:.*");
  for (const fs::path& page : pages) {
    const std::string text = ReadFile(page);
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      const std::string target = (*it)[1];
      if (std::regex_match(target, elsewhere)) continue;
      EXPECT_TRUE(fs::exists(page.parent_path() / target)) << page << " leads to " << target;
    }
  }
}

// Help and messages name pages as docs/NAME.md.
TEST_F(Install, EachPageThatAProgramNamesIsThere) {
  static const std::regex named("docs/[a-z-]+\\.md");
  std::set<std::string> pages;
  for (const char* folder : {"bin", "lib/ridgeline/plugins"}) {
    for (const auto& entry : fs::directory_iterator(Prefix() / folder)) {
      const std::string bytes = ReadFile(entry.path());
      for (size_t at = bytes.find("docs/"); at != std::string::npos; at = bytes.find("docs/", at + 1)) {
        std::smatch name;
        const std::string text = bytes.substr(at, 80);
        if (std::regex_search(text, name, named, std::regex_constants::match_continuous)) pages.insert(name[0]);
      }
    }
  }
  ASSERT_THAT(pages.size(), testing::Ge(8));
  for (const std::string& page : pages) EXPECT_TRUE(fs::exists(Prefix() / "share/ridgeline" / page)) << page;
}

TEST_F(Install, TheCompletionsAreOfTheirShells) {
  for (const auto& [shell, path] : {std::pair{"bash", "share/bash-completion/completions/ridgeline"},
                                    {"zsh", "share/zsh/site-functions/_ridgeline"},
                                    {"fish", "share/fish/vendor_completions.d/ridgeline.fish"}}) {
    const Captured checked = ridgeline::Run({shell, "-n", (Prefix() / path).string()});
    EXPECT_TRUE(checked.status.ok()) << checked.stderr_text;
    EXPECT_EQ(ReadFile(Prefix() / path), Ridgeline({"completion", shell}));
  }
}

TEST_F(Install, DoctorFindsTheInstalledPluginsAndTrainer) {
  const std::string text = Ridgeline({"doctor"});
  EXPECT_THAT(text, HasSubstr("local"));
  EXPECT_THAT(text, HasSubstr(fs::canonical(Prefix()).string()));
  EXPECT_THAT(text, Not(HasSubstr(RIDGELINE_BINARY_DIR)));
}

// As a bundle starts it where the C library is older than the one it was built with.
TEST_F(Install, IsFoundWhereALoaderStartsTheProgram) {
  const Captured linked = ridgeline::Run({"ldd", (Prefix() / "bin/ridgeline").string()});
  ASSERT_TRUE(linked.status.ok());
  std::string loader;
  std::istringstream lines(linked.stdout_text);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("/ld-");
    if (at == std::string::npos) continue;
    const size_t begin = line.find('/');
    loader = line.substr(begin, line.find(' ', begin) - begin);
  }
  ASSERT_FALSE(loader.empty()) << linked.stdout_text;
  const Captured doctor = ridgeline::Run({loader, (Prefix() / "bin/ridgeline").string(), "doctor"});
  EXPECT_THAT(doctor.stdout_text, HasSubstr("in " + (Prefix() / "share/ridgeline/sweeps").string()));
  EXPECT_THAT(doctor.stdout_text, Not(HasSubstr("is not there")));
}

// Copied to another machine, it needs no package there: each library comes from the installation or the C library.
TEST_F(Install, BringsItsLibraries) {
  const Captured linked = ridgeline::Run({"ldd", (Prefix() / "bin/ridgeline").string()});
  EXPECT_THAT(linked.stdout_text, HasSubstr("lib/ridgeline/libraries/libyaml-cpp.so"));
  EXPECT_THAT(linked.stdout_text, HasSubstr("lib/ridgeline/libraries/libstdc++.so"));
  EXPECT_TRUE(fs::is_regular_file(Prefix() / "share/ridgeline/libraries.txt"));
}

// Where a bundle's programs run by its own C library, what they start runs by the machine's.
TEST_F(Install, ABundleHandsItsCLibraryToNoChild) {
  const TempDir bundle;
  fs::copy(Prefix(), bundle.path(), fs::copy_options::recursive | fs::copy_options::create_hard_links);
  const Captured added = ridgeline::Run({RIDGELINE_SOURCE_DIR "/scripts/add-c-library.sh", bundle.path().string()});
  ASSERT_TRUE(added.status.ok()) << added.stderr_text;
  for (const char* program : {"ridgeline", "ridgeline-train"}) {
    std::string script = ReadFile(bundle.path() / "bin" / program);
    const size_t needed = script.find("needed=");
    ASSERT_NE(needed, std::string::npos);
    script.insert(needed + 7, "9");  // as where the C library is older
    WriteFileAtomic(bundle.path() / "bin" / program, script);
    fs::permissions(bundle.path() / "bin" / program, fs::perms::owner_all);
  }
  WriteFileAtomic("trainer.sh", R"(here=$(dirname "$0")
readlink /proc/$PPID/exe >"$here/parent"
env | grep ^LD_ >"$here/variables"
cat /proc/self/maps >"$here/maps"
exec "$here/ridgeline-train" "$@"
)");
  fs::create_symlink(bundle.path() / "bin/ridgeline-train", "ridgeline-train");
  std::string sweep = kSweep;
  const std::string launcher = "launcher: local";
  sweep.insert(sweep.find(launcher) + launcher.size(),
               ", trainer: [sh, \"" + (fs::current_path() / "trainer.sh").string() + "\"]");
  WriteFileAtomic("sweep.yaml", sweep);
  ::setenv("LD_LIBRARY_PATH", "/a/folder/of/the/user", 1);
  const Captured ran = ridgeline::Run({(bundle.path() / "bin/ridgeline").string(), "run", "sweep.yaml"});
  ::unsetenv("LD_LIBRARY_PATH");
  EXPECT_TRUE(ran.status.ok()) << ran.stdout_text << ran.stderr_text;
  EXPECT_THAT(ReadFile("parent"), HasSubstr("lib/ridgeline/glibc/ld-linux"));
  EXPECT_EQ(ReadFile("variables"), "LD_LIBRARY_PATH=/a/folder/of/the/user\n");
  EXPECT_THAT(ReadFile("maps"), Not(HasSubstr(bundle.path().string())));
}

// Each program and launcher that was built, as it is installed, and nothing else of an ELF file's kind.
std::vector<fs::path> InstalledPrograms(const fs::path& prefix) {
  std::vector<fs::path> programs;
  for (const char* folder : {"bin", "lib/ridgeline/plugins"}) {
    for (const auto& entry : fs::directory_iterator(prefix / folder)) programs.push_back(entry.path());
  }
  return programs;
}

std::string Readelf(std::vector<std::string> options, const fs::path& file) {
  options.insert(options.begin(), {"readelf", "-W"});
  options.push_back(file.string());
  const Captured captured = ridgeline::Run(options);
  EXPECT_TRUE(captured.status.ok()) << captured.stderr_text;
  return captured.stdout_text;
}

// They read untrusted bytes (rl_flags and rl_hardened_flags in cmake/options.cmake).
TEST_F(Install, ItsProgramsAreHardened) {
  if (ReadFile(RIDGELINE_BINARY_DIR "/CMakeCache.txt").find("CMAKE_BUILD_TYPE:STRING=Release") == std::string::npos) {
    GTEST_SKIP() << "a build for debugging, or with sanitizers, is not hardened";
  }
  const std::vector<fs::path> programs = InstalledPrograms(Prefix());
  ASSERT_THAT(programs.size(), testing::Ge(6));
  for (const fs::path& program : programs) {
    const std::string name = program.filename().string();
    SCOPED_TRACE(name);
    const std::string headers = Readelf({"-h", "-l", "-d"}, program);
    EXPECT_THAT(headers, testing::ContainsRegex("Type: +DYN")) << "its code lies where it was linked";
    EXPECT_THAT(headers, HasSubstr("GNU_RELRO")) << "its tables stay writable";
    EXPECT_THAT(headers, testing::ContainsRegex("FLAGS_1\\).*NOW")) << "functions are found late";
    EXPECT_THAT(headers, testing::ContainsRegex("GNU_STACK .* RW ")) << "its stack can be executed";
    if (program.extension() != ".so") {
      EXPECT_THAT(headers, testing::ContainsRegex("FLAGS_1\\).*PIE"));
    }
    if (name == "ridgeline-local-keeper") continue;  // linked statically, without names of functions
    const std::string functions = Readelf({"--dyn-syms"}, program);
    EXPECT_THAT(functions, HasSubstr("__stack_chk_fail")) << "its frames have no canaries";
    EXPECT_THAT(functions, testing::ContainsRegex("__[a-z]+_chk@")) << "the C library checks no sizes";
  }
}

// Libraries of CUDA may need a newer libstdc++ than an installation brings: LD_LIBRARY_PATH comes first.
TEST_F(Install, LooksForLibrariesWhereTheEnvironmentSaysFirst) {
  std::vector<fs::path> files = InstalledPrograms(Prefix());
  for (const auto& entry : fs::directory_iterator(Prefix() / "lib/ridgeline/libraries")) files.push_back(entry.path());
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    if (name == "ridgeline-local-keeper" || name == "ridgeline-slurm-agent") continue;  // they bring none
    const std::string dynamic = Readelf({"-d"}, file);
    EXPECT_THAT(dynamic, HasSubstr("(RUNPATH)")) << name;
    EXPECT_THAT(dynamic, Not(HasSubstr("(RPATH)"))) << name;
  }
  const TempDir newer;
  fs::copy_file(Prefix() / "lib/ridgeline/libraries/libstdc++.so.6", newer.path() / "libstdc++.so.6");
  for (const char* program : {"bin/ridgeline", "lib/ridgeline/plugins/ridgeline-launcher-kubernetes.so"}) {
    const Captured linked =
        ridgeline::Run({"env", "LD_LIBRARY_PATH=" + newer.path().string(), "ldd", (Prefix() / program).string()});
    EXPECT_THAT(linked.stdout_text, HasSubstr("libstdc++.so.6 => " + newer.path().string()));
    EXPECT_THAT(linked.stdout_text, HasSubstr("/libraries/libgcc_s.so.1"));
  }
}

// "libldap" of libldap-2.5.so.0: a library's name as NOTICE has it.
std::string WithoutVersions(const std::string& soname) {
  static const std::regex versions("(-[0-9.]+)?\\.so.*$");
  return std::regex_replace(soname, versions, "");
}

TEST_F(Install, NamesEachLibraryAndItsLicense) {
  const std::string notice = ReadFile(Prefix() / "share/ridgeline/NOTICE");
  std::vector<fs::path> files = InstalledPrograms(Prefix());
  for (const auto& entry : fs::directory_iterator(Prefix() / "lib/ridgeline/libraries")) files.push_back(entry.path());
  std::set<std::string> names;
  for (const fs::path& file : files) {
    std::istringstream lines(Readelf({"-d"}, file));
    for (std::string line; std::getline(lines, line);) {
      std::smatch soname;
      static const std::regex needed("\\(NEEDED\\).*\\[(.*)\\]");
      if (std::regex_search(line, soname, needed) && !soname[1].str().starts_with("ld-linux")) {
        names.insert(WithoutVersions(soname[1]));
      }
    }
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"libcurl", "libdnnl", "libsqlite3", "libslurm"}));
  for (const std::string& name : names) EXPECT_THAT(notice, HasSubstr("\n  " + name + " ")) << "add it and its license";

  // Those that are compiled in come of the packages that compiling takes.
  std::istringstream packages(ReadFile(RIDGELINE_SOURCE_DIR "/packages.txt"));
  std::string line;
  while (std::getline(packages, line) && line != "# Libraries") continue;
  while (std::getline(packages, line) && !line.empty()) {
    EXPECT_THAT(notice, HasSubstr(line.substr(0, line.find(' ')))) << "add it and its license";
  }
  for (const char* text : {"libcurl4", "libcli11-dev", "libc6", "LGPL-2.1"}) {
    EXPECT_TRUE(fs::is_regular_file(Prefix() / "share/ridgeline/licenses" / text)) << text;
  }
  EXPECT_TRUE(fs::is_regular_file(Prefix() / "share/ridgeline/LICENSE"));
}

TEST_F(Install, PlansASweepThatShips) {
  EXPECT_THAT(Ridgeline({"plan", (Prefix() / "share/ridgeline/sweeps/demo.yaml").string()}), HasSubstr("fits"));
}

TEST_F(Install, RunsASweepAndReportsIt) {
  Ridgeline({"run", "sweep.yaml"});
  const Json rows = ParseJson(
      Ridgeline({"query", "select status, count(*) as n from runs group by status", "-o", "json"}), "ridgeline query");
  ASSERT_EQ(rows.size(), 1U) << rows.dump();
  EXPECT_EQ(rows[0]["status"], "ok");
  EXPECT_EQ(rows[0]["n"], 2);

  Ridgeline({"report", "activation-checkpointing", "--to", "report.html"});
  const std::string page = ReadFile("report.html");
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("llama-1x32"));
}

TEST_F(Install, RunAgainSkipsWhatIsDone) {
  Ridgeline({"run", "sweep.yaml"});
  const std::string again = Ridgeline({"run", "sweep.yaml"});
  EXPECT_THAT(again, HasSubstr("2"));
  const Json rows = ParseJson(Ridgeline({"query", "select count(*) as n from runs", "-o", "json"}), "ridgeline query");
  EXPECT_EQ(rows[0]["n"], 2);
}

// Who only wants to use them installs nothing for the tests.
TEST(Programs, AreBuiltWithoutWhatTheTestsTake) {
  for (const char* target : {"demo", "install"}) {
    const Captured steps = ridgeline::Run({"env", "-u", "MAKEFLAGS", "make", "-n", "-C", RIDGELINE_SOURCE_DIR, target});
    EXPECT_THAT(steps.stdout_text, HasSubstr("scripts/install-packages.sh build\n"));
    EXPECT_THAT(steps.stdout_text, Not(HasSubstr("scripts/install-packages.sh\n")));
  }
  const TempDir build;
  const Captured configured = ridgeline::Run({"cmake", "-S", RIDGELINE_SOURCE_DIR, "-B", build.path().string(), "-G",
                                              "Ninja", "-DRIDGELINE_TESTS=OFF", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON",
                                              "-DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON"});
  EXPECT_TRUE(configured.status.ok()) << configured.stdout_text << configured.stderr_text;
}

}  // namespace
}  // namespace ridgeline
