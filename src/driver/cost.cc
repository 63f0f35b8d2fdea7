#include "driver/cost.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "collect/job_ends.h"
#include "launch/launcher.h"
#include "sweep/job_description.h"
#include "sweep/launch.h"
#include "yaml/yaml.h"

namespace ridgeline::driver {
namespace {

constexpr double kHourS = 3600;
constexpr double kMostBilled = 1e12;     // seconds, nodes or dollars beyond this are none
constexpr double kUsdDigit = 1e-6;       // the last digit of a cost that is kept
constexpr size_t kMostPredicted = 1000;  // points of a job of which the predictions are kept

std::optional<double> NumberIn(const std::map<std::string, std::string>& evidence, const char* name) {
  const auto found = evidence.find(name);
  if (found == evidence.end()) return std::nullopt;
  const std::string& text = found->second;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && number >= 0 && number <= kMostBilled ? std::optional(number) : std::nullopt;
}

double UsdOf(const sweep::SweepPrice& price, double nodes, double seconds) {
  return nodes * seconds / kHourS * price.node_usd_per_hour;
}

// The most that a job of this launch may cost; 0: its launcher does not say.
double MostUsdOf(const sweep::SweepPrice& price, const sweep::Launch& launch) {
  const sweep::JobDescription said = sweep::DescriptionOf(launch);
  return UsdOf(price, static_cast<double>(said.billed_nodes), static_cast<double>(said.most_billed_s));
}

// The sum of a job's predictions; nothing if one is not known.
std::optional<double> PredictedIn(const std::map<std::string, std::string>& evidence) {
  const auto found = evidence.find(kPredictedUsd);
  if (found == evidence.end()) return std::nullopt;
  const Json list = Json::parse(found->second, nullptr, false);
  if (!list.is_array()) return std::nullopt;
  double sum = 0;
  for (const Json& each : list) {
    if (!each.is_number()) return std::nullopt;
    sum += each.get<double>();
  }
  return sum;
}

void AddBilled(const sweep::SweepPrice& price, std::map<std::string, std::string>& evidence) {
  evidence.erase(kBilledUsd);  // is ours alone
  const std::optional<Bill> bill = BillIn(evidence);
  if (!bill || price.node_usd_per_hour <= 0) return;
  evidence[kBilledUsd] = fmt::format("{:.6f}", UsdOf(price, bill->nodes, bill->seconds));
}

// What was predicted for its points, if anything was.
void AddPredicted(const std::map<std::string, double>& predicted_usd, const store::JobRecord& job,
                  std::map<std::string, std::string>& evidence) {
  evidence.erase(kPredictedUsd);  // is ours alone
  const auto before = job.evidence.find(kPredictedUsd);
  if (predicted_usd.empty() && before != job.evidence.end()) evidence.insert(*before);
  if (predicted_usd.empty() || job.points.size() > kMostPredicted) return;
  Json list = Json::array();
  for (const store::JobRecord::Point& point : job.points) {
    const auto known = predicted_usd.find(point.id);
    list.push_back(known == predicted_usd.end() ? Json() : Json(known->second));
  }
  evidence[kPredictedUsd] = list.dump();
}

std::string Usd(double usd) { return fmt::format("{:.2f} USD", usd); }

}  // namespace

std::optional<Bill> BillIn(const std::map<std::string, std::string>& evidence) {
  const std::optional<double> seconds = NumberIn(evidence, collect::said::kBilledS);
  const std::optional<double> nodes = NumberIn(evidence, collect::said::kBilledNodes);
  if (!seconds || !nodes) return std::nullopt;
  return Bill{*nodes, *seconds, NumberIn(evidence, collect::said::kMayBillS).value_or(0),
              NumberIn(evidence, collect::said::kUsedS).value_or(0)};
}

void AddCost(const sweep::SweepPrice& price, const std::map<std::string, double>& predicted_usd,
             collect::JobToCollect& job) {
  AddBilled(price, job.evidence);
  AddPredicted(predicted_usd, job.job, job.evidence);
}

Costs CostsOf(store::Store& store, const std::vector<SweepCampaign>& of, const sweep::SweepPrice& price) {
  Json pairs = Json::array();
  for (const auto& [sweep, campaign] : of) pairs.push_back({sweep, campaign});
  const Table jobs = store.Query(
      "SELECT evidence, job_dir, EXISTS (SELECT 1 FROM job_points AS p JOIN results AS r ON r.point_id = p.point_id "
      "AND r.attempt = p.attempt WHERE p.job_key = jobs.key AND r.status = 'ok') FROM jobs WHERE (sweep, campaign) IN "
      "(SELECT value ->> 0, value ->> 1 FROM json_each(:of)) AND submitted_unix_ns IS NOT NULL AND state IN ('ended', "
      "'lost', 'cancelled')",
      {{"of", DumpJson(pairs)}});
  Costs costs;
  costs.predicted_usd = 0;
  for (const auto& row : jobs.rows) {
    const Json document = Json::parse(CellText(row[0]), nullptr, false);
    std::map<std::string, std::string> evidence;
    for (const auto& [name, text] : document.items()) {
      if (text.is_string()) evidence[name] = text.get<std::string>();
    }
    const std::optional<Bill> bill = BillIn(evidence);
    if (!bill) {
      costs.silent.emplace_back(CellText(row[1]));
      continue;
    }
    ++costs.jobs;
    const double now_usd = UsdOf(price, bill->nodes, bill->seconds);
    const double usd = NumberIn(evidence, kBilledUsd).value_or(now_usd);
    costs.usd += usd;
    costs.other_prices = costs.other_prices || std::abs(usd - now_usd) > kUsdDigit;
    if (CellInteger(row[2]) == 0) costs.failed_usd += usd;
    costs.may_come_usd += UsdOf(price, bill->nodes, bill->may_come_s);
    costs.node_hours += bill->nodes * bill->seconds / kHourS;
    if (bill->used_s > bill->seconds) {
      costs.used_node_hours += bill->nodes * bill->used_s / kHourS;
      costs.discounted_node_hours += bill->nodes * bill->seconds / kHourS;
    }
    const std::optional<double> predicted = PredictedIn(evidence);
    if (!predicted) costs.predicted_usd.reset();
    if (costs.predicted_usd) *costs.predicted_usd += *predicted;
  }
  return costs;
}

std::vector<std::string> CostLines(const Costs& costs, const sweep::SweepPrice& price) {
  std::vector<std::string> lines;
  if (costs.jobs > 0) {
    std::string text = fmt::format("billed: {:.3g} node-hours for {}", costs.node_hours, CountOf(costs.jobs, "job"));
    if (price.node_usd_per_hour > 0) {
      text += costs.other_prices ? fmt::format(", {} at the prices that the sweep had at their ends", Usd(costs.usd))
                                 : fmt::format(", {} at {} an hour and node ({}, as the sweep says)", Usd(costs.usd),
                                               Usd(price.node_usd_per_hour), price.date);
      if (costs.failed_usd > 0) text += fmt::format("; {} of it for jobs without an ok point", Usd(costs.failed_usd));
      if (costs.predicted_usd) text += fmt::format("; predicted for these jobs: {}", Usd(*costs.predicted_usd));
    }
    lines.push_back(std::move(text));
    if (costs.used_node_hours > 0) {
      lines.push_back(fmt::format("discounted jobs had {:.3g} node-hours, and were billed {:.0f} % less",
                                  costs.used_node_hours,
                                  100 * (1 - costs.discounted_node_hours / costs.used_node_hours)));
    }
    if (costs.may_come_usd > 0) {
      lines.push_back(fmt::format("at most {} more may be billed for nodes that were kept after their jobs",
                                  Usd(costs.may_come_usd)));
    }
  }
  if (!costs.silent.empty() && costs.jobs > 0) {
    lines.push_back(fmt::format("what {} {} billed is not known, and is in no sum",
                                CountOf(std::ssize(costs.silent), "job"), costs.silent.size() == 1 ? "was" : "were"));
  }
  return lines;
}

double DearestUsd(const sweep::Sweep& sweep, const std::vector<Point>& points, const launch::Launcher& launcher) {
  if (sweep.price.max_usd <= 0) return 0;
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(ErrorKind::kInvalidInput, yaml::FaultText(sweep.file, {sweep.price.max_place, "price: " + why}), hint);
  };
  // Only jobs of a queue stay as they were planned, so that a job costs what was checked before it.
  if (!launcher.can().bill || !launcher.can().queue) {
    refuse(fmt::format("max_cost is given, and jobs of the launcher {} are not billed", launcher.name()),
           "remove max_cost");
  }
  double dearest_usd = 0;
  for (const Point& point : points) {
    const double usd = MostUsdOf(sweep.price, sweep::LaunchOf(sweep, point));
    if (usd <= 0) {
      refuse(fmt::format("max_cost is given, and the launcher {} does not say what a job may be billed at most",
                         launcher.name()),
             "remove max_cost, or change the launcher's settings so that jobs are billed by the time that they take");
    }
    dearest_usd = std::max(dearest_usd, usd);
  }
  return dearest_usd;
}

CostLimit::CostLimit(const sweep::Sweep& sweep, const DriverOptions& options, const DriverParts& parts,
                     const SweepPoints& points)
    : sweep_(sweep),
      options_(options),
      parts_(parts),
      points_(points),
      of_(options.costs_of.empty() ? std::vector<SweepCampaign>{{sweep.name, options.campaign}} : options.costs_of),
      dearest_usd_(DearestUsd(sweep, points.all(), parts.launcher)) {}

double CostLimit::MostUsd(const Job& job) const {
  const Point* point = points_.Find(job.points.front().id);
  sweep::Launch launch = point != nullptr ? sweep::LaunchOf(sweep_, *point) : sweep_.launch;
  const launch::LaunchJob asked = launch::ToLaunchJob(job, options_.program);
  if (!job.config.is_null()) launch.config = job.config;
  launch.nodes = asked.nodes;
  launch.time_limit_s = asked.time_limit_s;
  launch.time_limit_auto = false;
  return MostUsdOf(sweep_.price, launch);
}

// A job that is not given is in its file. If that cannot be read, the job counts as the dearest.
double CostLimit::MostUsd(const std::filesystem::path& job_dir, const std::optional<Job>& job) {
  const auto [known, is_new] = most_usd_.try_emplace(job_dir, 0);
  if (!is_new) return known->second;
  std::optional<Job> found = job;
  try {
    if (!found) found = ReadJobFile(job_dir);
  } catch (const Error&) {
    found.reset();
  }
  return known->second = found && !found->points.empty() ? MostUsd(*found) : dearest_usd_;
}

void CostLimit::AddTo(std::vector<collect::JobToCollect>& jobs) {
  for (collect::JobToCollect& job : jobs) {
    if (store::IsLive(job.state)) continue;
    AddCost(sweep_.price, options_.predicted_usd, job);
    costs_.reset();  // the store has more bills when these jobs are collected
  }
}

bool CostLimit::HasRoomFor(const Job& next, JobTable& live) {
  const double limit_usd = sweep_.price.max_usd;
  if (limit_usd <= 0) return true;
  const double next_usd = MostUsd(next);
  dearest_usd_ = std::max(dearest_usd_, next_usd);
  double live_usd = 0;
  for (const LiveJob& job : live) live_usd += MostUsd(job.record.job_dir, job.to_submit);
  if (!costs_) costs_ = CostsOf(parts_.store, of_, sweep_.price);
  double billed_usd = costs_->usd + costs_->may_come_usd;
  for (const std::filesystem::path& silent : costs_->silent) billed_usd += MostUsd(silent);
  if (billed_usd + live_usd + next_usd <= limit_usd) return true;
  if (!live.empty()) return false;
  stopped_ = fmt::format(
      "another job could pass max_cost, {}: {} are or may be billed for ended jobs, and the job may "
      "cost {}; with a larger max_cost, the same command goes on",
      Usd(limit_usd), Usd(billed_usd), Usd(next_usd));
  return false;
}

}  // namespace ridgeline::driver
