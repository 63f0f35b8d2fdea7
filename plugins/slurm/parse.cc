#include "slurm/parse.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace ridgeline::slurm {
namespace {

using plugin::Json;

constexpr int64_t kLargestTask = 4'000'000;  // Slurm's own limit
constexpr size_t kMostNodes = 10'000;        // most nodes of a job that are named

// Removes and returns the text up to `separator`, or all of it if there is no separator.
std::string_view Take(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Returns 0 for "N/A", "Unknown" and "None", which mean that the time is not known.
int64_t Time(std::string_view text) { return Number(text).value_or(0); }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (!text.empty()) words.push_back(Take(text, separator));
  return words;
}

// Parses a wait status, or code:signal, "3:0", from sacct and from squeue of newer releases.
int ExitStatus(std::string_view text) {
  if (text.find(':') == std::string_view::npos) return static_cast<int>(Number(text).value_or(0));
  const int64_t code = Number(Take(text, ':')).value_or(0);
  const int64_t signal = Number(text).value_or(0);
  return static_cast<int>(signal > 0 ? signal : code << 8);
}

// For a pending job, the start is only Slurm's forecast.
void SetStart(int64_t start_s, Row& row) { (row.state == "PENDING" ? row.expected_s : row.started_s) = start_s; }

// Adds the hosts of a range, such as "07-10", between `prefix` and `suffix`. Returns false if it is no such range.
bool AddRange(std::string_view range, const std::string& prefix, const std::string& suffix,
              std::vector<std::string>& hosts) {
  const std::string_view first_digits = Take(range, '-');
  const std::optional<int64_t> first = Number(first_digits);
  const std::optional<int64_t> last = range.empty() ? first : Number(range);
  if (!first || !last || *last < *first || static_cast<size_t>(*last - *first) >= kMostNodes) return false;
  for (int64_t number = *first; number <= *last; ++number) {
    if (hosts.size() == kMostNodes) return false;
    hosts.push_back(fmt::format("{}{:0{}}{}", prefix, number, first_digits.size(), suffix));
  }
  return true;
}

// Adds the hosts of "n[1-2,07]" or "login".
bool AddHosts(std::string_view word, std::vector<std::string>& hosts) {
  const size_t open = word.find('[');
  if (open == std::string_view::npos) {
    if (word.empty() || hosts.size() == kMostNodes) return false;
    hosts.emplace_back(word);
    return true;
  }
  const size_t close = word.find(']', open);
  if (close == std::string_view::npos || word.find('[', close) != std::string_view::npos) return false;
  const std::string prefix(word.substr(0, open));
  const std::string suffix(word.substr(close + 1));
  std::string_view ranges = word.substr(open + 1, close - open - 1);
  while (!ranges.empty()) {
    if (!AddRange(Take(ranges, ','), prefix, suffix, hosts)) return false;
  }
  return true;
}

}  // namespace

std::string_view KeyIn(std::string_view job_name) {
  const size_t dot = job_name.rfind('.');
  const std::string_view key = dot == std::string_view::npos ? "" : job_name.substr(dot + 1);
  return key.starts_with("rl-") ? key : std::string_view();
}

std::vector<std::string> HostsOf(std::string_view list) {
  std::vector<std::string> hosts;
  std::string_view rest = list;
  while (!rest.empty()) {
    const size_t open = rest.find('[');
    size_t end = rest.find(',');
    if (open < end) end = rest.find(',', rest.find(']', open));
    if (!AddHosts(rest.substr(0, end), hosts)) return {std::string(list)};
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return hosts;
}

std::optional<std::vector<int64_t>> ParseTasks(std::string_view text) {
  if (text.starts_with('[')) text.remove_prefix(1);
  text = Take(text, '%');
  if (text.ends_with(']')) text.remove_suffix(1);
  std::vector<int64_t> tasks;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    std::string_view part = Take(text, ',');
    std::string_view range = Take(part, ':');
    const std::optional<int64_t> step = part.empty() ? 1 : Number(part);
    const bool is_range = range.find('-') != std::string_view::npos;
    const std::optional<int64_t> first = Number(Take(range, '-'));
    const std::optional<int64_t> last = is_range ? Number(range) : first;
    if (!first || !last || !step || *step < 1 || *last < *first || *last > kLargestTask) return std::nullopt;
    const int64_t count = (*last - *first) / *step + 1;
    if (count > kLargestTask + 1 - std::ssize(tasks)) return std::nullopt;
    for (int64_t i = 0; i < count; ++i) tasks.push_back(*first + i * *step);
  }
  return tasks;
}

std::string FormatTasks(const std::vector<int64_t>& tasks) {
  std::string text;
  for (size_t i = 0; i < tasks.size();) {
    size_t last = i;
    while (last + 1 < tasks.size() && tasks[last + 1] == tasks[last] + 1) ++last;
    text += text.empty() ? "" : ",";
    text += last == i ? std::to_string(tasks[i]) : fmt::format("{}-{}", tasks[i], tasks[last]);
    i = last + 1;
  }
  return text;
}

const char* const kSqueueFormat =
    "ArrayJobID:|,ArrayTaskID:|,State:|,exit_code:|,RestartCnt:|,SubmitTime:|,StartTime:|,EndTime:|,NodeList:|,"
    "Reason:|,Partition:|,Name:|";

std::vector<Row> ParseSqueue(std::string_view text) {
  constexpr size_t kColumns = 12;
  std::vector<Row> rows;
  while (!text.empty()) {
    const std::vector<std::string_view> words = Split(Take(text, '\n'), '|');
    if (words.size() < kColumns) continue;
    const std::optional<int64_t> id = Number(words[0]);
    if (!id) continue;
    Row row;
    row.job_id = *id;
    if (words[1] != "N/A") {
      row.tasks = ParseTasks(words[1]);
      if (!row.tasks) continue;
    }
    row.state = words[2];
    row.exit_status = ExitStatus(words[3]);
    row.restarts = Number(words[4]).value_or(0);
    row.submitted_s = Time(words[5]);
    SetStart(Time(words[6]), row);
    row.ended_s = Time(words[7]);
    row.nodes = words[8];
    row.reason = words[9];
    row.partitions = words[10];
    row.name = KeyIn(words[11]);
    rows.push_back(std::move(row));
  }
  return rows;
}

const char* const kSacctFormat = "JobID,State,ExitCode,Submit,Start,End,NodeList,UID,JobName";

std::vector<Row> ParseSacct(std::string_view text) {
  constexpr size_t kColumns = 9;
  std::vector<Row> rows;
  while (!text.empty()) {
    const std::vector<std::string_view> words = Split(Take(text, '\n'), '|');
    if (words.size() < kColumns) continue;
    std::string_view id = words[0];  // "12", "12_3", "12_[4-9%2]"
    Row row;
    const std::optional<int64_t> number = Number(Take(id, '_'));
    if (!number) continue;
    row.job_id = *number;
    if (!id.empty()) {
      row.tasks = ParseTasks(id);
      if (!row.tasks) continue;
    }
    std::string_view state = words[1];  // "CANCELLED by 1000"
    row.state = Take(state, ' ');
    row.by_its_user = Take(state, ' ') == "by" && state == words[7] && state != "0";
    row.exit_status = ExitStatus(words[2]);
    row.submitted_s = Time(words[3]);
    row.started_s = Time(words[4]);
    row.ended_s = Time(words[5]);
    if (words[6] != "None assigned") row.nodes = words[6];
    row.name = KeyIn(words[8]);
    rows.push_back(std::move(row));
  }
  return rows;
}

Row RowFromJson(const Json& row) {
  Row result;
  result.name = KeyIn(row.at(0).get_ref<const std::string&>());
  row.at(1).get_to(result.job_id);
  if (const auto tasks = row.at(2).get<std::string>(); !tasks.empty()) result.tasks = ParseTasks(tasks);
  row.at(3).get_to(result.state);
  row.at(4).get_to(result.reason);
  row.at(5).get_to(result.exit_status);
  row.at(6).get_to(result.restarts);
  row.at(7).get_to(result.submitted_s);
  row.at(8).get_to(result.started_s);
  row.at(9).get_to(result.ended_s);
  row.at(10).get_to(result.nodes);
  row.at(11).get_to(result.expected_s);
  row.at(12).get_to(result.by_its_user);
  row.at(13).get_to(result.partitions);
  return result;
}

Facts ParseConfig(std::string_view scontrol_show_config) {
  Facts facts;
  while (!scontrol_show_config.empty()) {
    std::string_view value = Take(scontrol_show_config, '\n');
    const std::string_view name = Trim(Take(value, '='));
    value = Trim(value);
    std::string_view number = value;  // "10 sec"
    number = Take(number, ' ');
    if (name == "SLURM_VERSION") facts.version = value;
    if (name == "ClusterName") facts.cluster = value;
    if (name == "MaxArraySize") facts.max_array_size = Number(number).value_or(facts.max_array_size);
    if (name == "MaxJobCount") facts.max_job_count = Number(number).value_or(facts.max_job_count);
    if (name == "MessageTimeout") facts.message_timeout_s = Number(number).value_or(facts.message_timeout_s);
    if (name == "MinJobAge") facts.min_job_age_s = Number(number).value_or(facts.min_job_age_s);
    if (name == "AccountingStorageType") facts.accounting = value == "accounting_storage/slurmdbd";
  }
  return facts;
}

}  // namespace ridgeline::slurm
