// What a sweep takes before any of it is run: time, nodes' hours, energy and dollars, a point and in sum, each with
// what it is known from.
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

namespace ridgeline {

// How long points took that were measured, apart for each device that they ran on and each trainer: what took so long
// on a processor says nothing of a GPU.
class MeasuredTimes {
 public:
  void Took(const RunSpec& spec, double seconds);
  // Of those that ran on what the spec runs on; nullptr: none.
  const TimeModel* Of(const RunSpec& spec) const;

 private:
  std::map<std::array<std::string, 3>, TimeModel> models_;  // by device, gpu and trainer
};

struct PointPrice {
  enum class Basis {
    kUnknown,
    kMeasurements,  // of such points, by their relative cost
    kCalibrated,    // the clock's, with efficiencies that were measured on the device
    kExtrapolated,  // the clock's, with those that others' figures say
    kEstimated      // the clock's, of another trainer, as its framework says
  };
  Basis basis = Basis::kUnknown;
  double seconds = 0;  // of all of its repeats, one after another
  // The same in 90 of 100 cases. Nothing: nobody knows (kNoInterval).
  struct Interval {
    double low_s = 0, high_s = 0;
  };
  std::optional<Interval> interval = {};
  double nodes = 1;
  double usd_per_hour = 0;  // of all of its nodes; 0: not known
  double watts = 0;         // of all of its nodes, or GPUs, at their limit; 0: not known
  GpuRates rates = {};      // of a step, as the clock says; what points were measured to take says none
  bool runs = true;         // false: it has a result, or cannot fit, and is in no sum
};

std::string_view BasisName(PointPrice::Basis basis);  // "from measurements"; empty: not known

struct PriceParts {
  std::optional<Device> device;  // what it is priced on; nothing: where its launcher's points were measured
  std::shared_ptr<const Frameworks> frameworks = {};  // by which points of other trainers are estimated; may be empty
  MeasuredTimes times;                                // of the sweep's launcher
  std::set<std::string> finished;                     // ids of points that have their result
};

// One a point of the plan, in its order. A point on the described device takes what such points were measured to take,
// where any were, else what the clock says; without a described device, what was measured. A node is a machine of the
// device, and has as many of a point's ranks as that has GPUs, where the sweep's `launch` asks for no more nodes. The
// sweep's own price and power of a node go before the device's. Throws Error with the point's id where a device does
// not say what a step needs.
std::vector<PointPrice> PricePoints(const Sweep& sweep, const std::vector<Point>& points, const Plan& plan,
                                    const PriceParts& parts, const OnPoint& on_point = {});

// Puts the columns of a price into the plan's table; those of which no point has a value are left out.
void AddPrices(const std::vector<PointPrice>& prices, Audience audience, Table& table);

// "to run 6 of 8 points takes 3 min 20 s (2 min 28 s … 4 min 30 s) one after another, …"; empty where nothing is known
// of any.
std::string PriceSummary(const Sweep& sweep, const std::vector<PointPrice>& prices, const PriceParts& parts);

// The device that the sweep's `price` names. Throws Error(kInvalidInput) with its place in the sweep where there is
// none.
Device PricedDevice(const Sweep& sweep, const std::vector<std::filesystem::path>& folders);

// Nodes that the point runs on: those that its launch asks for, and no fewer than the device's machines that its ranks
// take; nullptr: no device is described.
double NodesOf(const RunSpec& spec, const Launch& launch, const Device* device);

// Whether the point itself says that it runs on the device's GPU. Of processors nothing says which they are.
bool RunsOn(const RunSpec& spec, const Device& device);

// What an hour of these nodes costs, by the sweep's price of a node, else by the device's; 0: nobody says.
double DollarsAnHour(const Sweep& sweep, double nodes, const Device* device);

// What the clock says of the points, for bundles and time limits before any is measured.
TimeModel AssumedTimes(const Sweep& sweep, const std::vector<Point>& points, const Device& device,
                       const Frameworks* frameworks = nullptr);

}  // namespace ridgeline
