// Pyxis for a test's Slurm: a plugin of slurmd that reads pyxis' options (those of 0.24 that we use), and puts a task
// where they say. Its image sets two variables. An image named `missing` cannot be fetched.
#include <unistd.h>

#include <string>

extern "C" {
#include <slurm/spank.h>
}

extern "C" {
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
const char plugin_name[] = "pyxis_stand_in";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;
}

namespace {

enum Kind { kImage = 1, kMounts, kFolder, kName, kNoHome };
constexpr int kFailed = -1;  // slurmstepd ignores positive values
std::string image;
std::string folder;

int Take(int kind, const char* value, int /*remote*/) {
  if (kind == kImage) image = value;
  if (kind == kFolder) folder = value;
  return ESPANK_SUCCESS;
}

spank_option Option(const char* name, const char* value, Kind kind) {
  spank_option option{};
  option.name = const_cast<char*>(name);
  option.arginfo = const_cast<char*>(value);
  option.usage = const_cast<char*>("a stand-in");
  option.has_arg = value == nullptr ? 0 : 1;
  option.val = kind;
  option.cb = Take;
  return option;
}

}  // namespace

extern "C" {

int slurm_spank_init(spank_t spank, int /*argc*/, char** /*argv*/) {
  for (spank_option option :
       {Option("container-image", "IMAGE", kImage), Option("container-mounts", "SRC:DST", kMounts),
        Option("container-workdir", "PATH", kFolder), Option("container-name", "NAME", kName),
        Option("no-container-mount-home", nullptr, kNoHome)}) {
    if (const auto error = spank_option_register(spank, &option); error != ESPANK_SUCCESS) return error;
  }
  return ESPANK_SUCCESS;
}

int slurm_spank_user_init(spank_t /*spank*/, int /*argc*/, char** /*argv*/) {
  if (image.find("missing") == std::string::npos) return ESPANK_SUCCESS;
  slurm_error("pyxis: failed to import docker image: %s", image.c_str());
  return kFailed;
}

int slurm_spank_task_init(spank_t spank, int /*argc*/, char** /*argv*/) {
  if (image.empty()) return ESPANK_SUCCESS;
  spank_setenv(spank, "FROM_IMAGE", "yes", 1);
  spank_setenv(spank, "SET_BY_BOTH", "image", 1);
  return ::chdir(folder.c_str()) == 0 ? ESPANK_SUCCESS : kFailed;
}
}
