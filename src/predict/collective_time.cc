// Predicts how long a collective takes, with NCCL's own model of its rings.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "predict/step_model.h"

namespace ridgeline::predict {
namespace {

// "name a machine of such GPUs, joined by a network: dgx-h100, p5".
std::string NameAMachine(const Device& device) {
  const std::vector<std::string> machines = MachinesWith(device.gpu, DeviceFolders({device.file.parent_path()}));
  return machines.empty()
             ? "name a machine of several GPUs with a network: `ridgeline devices` lists them"
             : fmt::format("name a machine of {} GPUs with a network: --device {}", device.gpu, Join(machines, " or "));
}

// NCCL's protocols for a ring, from its own tables (src/graph/tuning.cc): the start-up time of a collective, the time
// of a hop relative to the simple protocol's, and the share of the bandwidth that is data. NCCL takes the protocol
// that it estimates to be fastest.
struct Protocol {
  double start_s, link_hop, network_hop, data;
};
constexpr Protocol kProtocols[] = {{8.4e-6, 1, 1, 1}, {14.0e-6, 0.56, 0.29, 0.92}, {6.6e-6, 0.18, 0.19, 0.5}};

}  // namespace

double CollectiveSeconds(double wire_bytes, bool all_reduce, engine::RankGroup group, const Device& device,
                         const Efficiency& efficiency) {
  const int64_t ranks = group.ranks;
  const int64_t stride = group.stride;
  if (ranks <= 1) return 0;
  if (!device.Has("link.bandwidth")) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} ({}) says nothing of a link between GPUs, and there are {} ranks", device.name,
                            device.file.string(), ranks * stride),
                "add `link`, or " + NameAMachine(device));
  }
  const int64_t domain = std::min(ranks, std::max<int64_t>(1, device.domain() / stride));
  const int64_t domains = (ranks + domain - 1) / domain;
  const double times = all_reduce ? 2 : 1;
  const double link_hops_s = times * static_cast<double>(ranks - domains) * device.At("link.latency");
  double network_hops_s = 0;
  double wire_s = wire_bytes / (device.At("link.bandwidth") * efficiency.link);
  if (domains > 1) {
    if (!device.Has("network.bandwidth")) {
      throw Error(ErrorKind::kInvalidInput,
                  fmt::format("{} is {}without a network. Links join {} of its GPUs, and there are {} ranks",
                              device.name, device.gpus() == 1 ? "a single GPU, " : "", device.domain(), ranks * stride),
                  NameAMachine(device));
    }
    // Each machine receives over its network what its GPUs lack. Meanwhile the GPUs pass it on over their links. If
    // the ranks of the collective stand apart (`stride`), the ranks between them run the same collective at the same
    // time.
    const double machine_bytes_per_s = device.At("network.bandwidth") * efficiency.network;
    const int64_t gpus = std::min(domain * stride, device.domain());
    const double domain_bytes_per_s =
        machine_bytes_per_s * static_cast<double>(gpus) / static_cast<double>(device.gpus());
    // The whole is wire_bytes n / (n - 1). All but this domain's part of it enters.
    const double entering = wire_bytes * static_cast<double>(ranks - domain) / static_cast<double>(ranks - 1);
    wire_s = std::max(wire_s, static_cast<double>(std::min(stride, device.domain())) * entering / domain_bytes_per_s);
    network_hops_s = times * static_cast<double>(domains - 1) * device.At("network.latency");
  }
  double least = std::numeric_limits<double>::infinity();
  for (const Protocol& p : kProtocols) {
    least = std::min(least, p.start_s + link_hops_s * p.link_hop + network_hops_s * p.network_hop + wire_s / p.data);
  }
  return least;
}

}  // namespace ridgeline::predict
