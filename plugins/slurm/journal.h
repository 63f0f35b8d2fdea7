// The arrays this launcher has submitted, or was about to: a file each, so that whoever is killed when, the next one
// knows which names to look for.
//
// state_dir/arrays/NAME.json is written, and on the disk, before Slurm hears of the array; it gets the id once Slurm
// has given one. NAME.TASK.log beside it is what a task printed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/journal_folder.h"

namespace ridgeline::slurm {

struct Array {
  std::string name;
  std::vector<std::string> keys;    // by task
  bool is_array = true;             // false: one job, and no tasks
  int64_t id = 0;                   // 0: nobody knows whether Slurm has it
  int64_t recorded_unix_s = 0;      // when it was about to be submitted
  std::set<size_t> cancelled = {};  // tasks told to end: of one that had not begun Slurm keeps no record
  std::string job_name = {};        // as Slurm has it; the name is in it
  std::set<int64_t> twins = {};     // ids of the same once more, told to end: never the array
  int64_t submitted_unix_s = 0;     // when Slurm says that it was; 0: not known
};

class Journal {
 public:
  // Reads what is there. Throws Failure.
  explicit Journal(const std::filesystem::path& state_dir);

  std::string dir() const { return folder_.dir().string(); }
  int64_t size() const { return static_cast<int64_t>(arrays_.size()); }

  // The array that holds a job, and its task there; nullptr where no array does.
  struct Place {
    Array* array = nullptr;
    size_t task = 0;
  };
  Place Find(const std::string& key) const;
  Array* FindArray(const std::string& name);
  // The first array of which this is so; nullptr where there is none.
  const Array* FindIf(const std::function<bool(const Array&)>& is) const;

  // On the disk when they return. Throw Failure, and then nothing is changed.
  Array& Record(Array array);
  void SetId(Array& array, int64_t id);
  void AddCancelled(Array& array, const std::set<size_t>& tasks);
  void AddTwin(Array& array, int64_t id);
  void SetSubmitted(Array& array, int64_t unix_s);
  // Slurm does not have it and will not: as if it had never been.
  void Forget(const std::string& name);

 private:
  Array& Keep(Array array);
  void Replace(Array& array, Array changed);

  plugin::JournalFolder folder_;
  std::map<std::string, Array> arrays_;  // by name
  std::unordered_map<std::string, Place> places_;
};

}  // namespace ridgeline::slurm
