// A launcher's records of jobs, by their keys, of which each job has one: a file each, and a copy in memory.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/journal_folder.h"
#include "common/keys.h"

namespace ridgeline::plugin {

// `Record` has the member `key`. kDecode throws JSON's exceptions if the document is no such record. All functions
// throw Failure, except Forget.
template <typename Record, Json (*kEncode)(const Record& record), Record (*kDecode)(const Json& document)>
class JobRecords {
 public:
  // As for JournalFolder.
  JobRecords(std::filesystem::path dir, std::string remedy) : folder_(std::move(dir), std::move(remedy)) {}

  // Returns nullptr if there is none. A found record stays at its address.
  Record* Find(const std::string& key) {
    if (const auto it = records_.find(key); it != records_.end()) return &it->second;
    if (!IsKey(key)) return nullptr;
    auto record = folder_.Read(key, kDecode);
    return record ? &(records_[key] = std::move(*record)) : nullptr;
  }
  // The record is on the disk when it returns.
  Record& Write(Record record) {
    folder_.Write(record.key, kEncode(record));
    return records_[record.key] = std::move(record);
  }
  // The record is read again when it is next needed.
  void Forget(const std::string& key) { records_.erase(key); }

 private:
  JournalFolder folder_;
  std::map<std::string, Record> records_;
};

}  // namespace ridgeline::plugin
