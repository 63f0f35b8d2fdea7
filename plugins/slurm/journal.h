// The arrays that this launcher has submitted, or was about to submit: one file each. Whoever is killed at any moment,
// the next launcher knows which names to look for.
//
// state_dir/arrays/NAME.json is on the disk before Slurm hears of the array. It gets the id once Slurm has given one.
// NAME.TASK.log beside it is a task's output.
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
  std::vector<std::string> keys;    // by task index
  bool is_array = true;             // false: a single job without tasks
  int64_t id = 0;                   // 0: it is not known whether Slurm has it
  int64_t recorded_unix_s = 0;      // just before it was submitted
  std::set<size_t> cancelled = {};  // tasks told to end; Slurm keeps no record of one that had not begun
  std::string job_name = {};        // its name in Slurm, which contains `name`
  std::set<int64_t> twins = {};     // ids of further copies, which were told to end; never the array itself
  int64_t submitted_unix_s = 0;     // submit time according to Slurm; 0: not known
};

class Journal {
 public:
  // Reads the existing files. Throws Failure.
  explicit Journal(const std::filesystem::path& state_dir);

  std::string dir() const { return folder_.dir().string(); }
  int64_t size() const { return static_cast<int64_t>(arrays_.size()); }

  // The array that holds a job, and the job's task in it; nullptr if no array does.
  struct Place {
    Array* array = nullptr;
    size_t task = 0;
  };
  Place Find(const std::string& key) const;
  Array* FindArray(const std::string& name);
  // Returns the first array for which this is true; nullptr if there is none.
  const Array* FindIf(const std::function<bool(const Array&)>& is) const;

  // The change is on the disk when they return. If they throw Failure, nothing has changed.
  Array& Record(Array array);
  void SetId(Array& array, int64_t id);
  void AddCancelled(Array& array, const std::set<size_t>& tasks);
  void AddTwin(Array& array, int64_t id);
  void SetSubmitted(Array& array, int64_t unix_s);
  // Forgets an array that Slurm certainly does not have and will not get.
  void Forget(const std::string& name);

 private:
  Array& Keep(Array array);
  void Replace(Array& array, Array changed);

  plugin::JournalFolder folder_;
  std::map<std::string, Array> arrays_;  // by name
  std::unordered_map<std::string, Place> places_;
};

}  // namespace ridgeline::slurm
