// What a sweep takes before any of it is run: time, hours of nodes, energy and dollars, for each point and in sum. Each
// figure states its basis.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/table.h"
#include "plan/forecast.h"
#include "plan/plan.h"
#include "plan/show.h"
#include "predict/device.h"
#include "predict/time_model.h"
#include "sweep/sweep.h"

namespace ridgeline::plan {

// Measured durations of points, kept apart by device and trainer: a duration on a processor says nothing about a GPU.
class MeasuredTimes {
 public:
  void Took(const RunSpec& spec, double seconds);
  // The durations on the spec's device; nullptr: there are none.
  const predict::TimeModel* Of(const RunSpec& spec) const;

 private:
  std::map<std::array<std::string, 3>, predict::TimeModel> models_;  // by device, gpu and trainer
};

struct PointPrice {
  enum class Basis {
    kUnknown,
    kMeasurements,  // of such points, by their relative cost
    kCalibrated,    // the step model's, with efficiencies that were measured on the device
    kExtrapolated,  // the step model's, with efficiencies derived from figures of others
    kEstimated      // the step model's, for another trainer, by its framework
  };
  Basis basis = Basis::kUnknown;
  double seconds = 0;  // for all its repeats, one after another
  // The 90% interval of `seconds`. Nothing: it is not known (kNoInterval).
  struct Interval {
    double low_s = 0, high_s = 0;
  };
  std::optional<Interval> interval = {};
  double nodes = 1;
  double usd_per_hour = 0;  // for all its nodes; 0: not known
  double watts = 0;         // for all its nodes, or GPUs, at their limit; 0: not known
  GpuRates rates = {};      // of a step, by the step model; empty if the time comes from measurements
  bool runs = true;         // false: it has a result, or cannot fit, and is in no sum
};

std::string_view BasisName(PointPrice::Basis basis);  // "from measurements"; empty: not known

struct PriceParts {
  // The device to price for; nothing: that on which its launcher's points were measured.
  std::optional<predict::Device> device;
  // For the estimates of other trainers' points; may be empty.
  std::shared_ptr<const predict::Frameworks> frameworks = {};
  MeasuredTimes times;             // for the sweep's launcher
  std::set<std::string> finished;  // ids of points that have a result
};

// Returns one price for each point of the plan, in order. On the described device a point takes what such points were
// measured to take, if any were, else what the step model says. Without a described device, it takes what was measured.
// A node is a machine of the device, with as many of a point's ranks as it has GPUs, unless the sweep's `launch` asks
// for more nodes. The sweep's own price and power of a node take precedence over the device's. Throws Error with the
// point's id if the device lacks a figure that a step needs.
std::vector<PointPrice> PricePoints(const sweep::Sweep& sweep, const std::vector<Point>& points, const Plan& plan,
                                    const PriceParts& parts, const OnPoint& on_point = {});

// Adds the price columns to the plan's table, without columns that have no value for any point.
void AddPrices(const std::vector<PointPrice>& prices, Audience audience, Table& table);

// Returns "to run 6 of 8 points takes 3 min 20 s (2 min 28 s … 4 min 30 s) one after another, …"; empty if nothing is
// known for any point.
std::string PriceSummary(const sweep::Sweep& sweep, const std::vector<PointPrice>& prices, const PriceParts& parts);

// Returns the device that the sweep's `price` names. Throws Error(kInvalidInput) with the place in the sweep if there
// is none.
predict::Device PricedDevice(const sweep::Sweep& sweep, const std::vector<std::filesystem::path>& folders);

// Returns the number of nodes for the point: those that its launch asks for, but at least as many as the device's
// machines that its ranks take. nullptr: no device is described.
double NodesOf(const RunSpec& spec, const sweep::Launch& launch, const predict::Device* device);

// Returns whether the point itself says that it runs on the device's GPU. Nothing says which processors a point runs
// on.
bool RunsOn(const RunSpec& spec, const predict::Device& device);

// Returns the price of an hour of these nodes, by the sweep's price of a node, else by the device's; 0: not known.
double DollarsAnHour(const sweep::Sweep& sweep, double nodes, const predict::Device* device);

// Returns the step model's times for the points, for bundles and time limits before any point is measured.
predict::TimeModel AssumedTimes(const sweep::Sweep& sweep, const std::vector<Point>& points,
                                const predict::Device& device, const predict::Frameworks* frameworks = nullptr,
                                const OnPoint& on_point = {});

}  // namespace ridgeline::plan
