// Connects ranks with one CUDA device each through NCCL: over NVLink, the network or this machine's memory, as NCCL
// finds them.
//
// NCCL chooses the order in which it adds. It depends on the number of ranks, their machines and the size. So sums are
// compared with other devices' and other numbers of ranks within a tolerance. For a mean, NCCL multiplies values by 1 /
// world before it adds them.
//
// The ranks meet over their Communicator. It distributes rank 0's id of the new group of devices among ranks that have
// proved to each other that they know the job's secret. With that id, NCCL makes connections of its own, which are
// neither authenticated again nor encrypted: anyone who can read the packets between two nodes can join.
// NCCL_SOCKET_IFNAME selects the network.
//
// A device waits forever for a lost rank, and so does a host that waits for the device. So a thread watches: when the
// Communicator knows that a rank is lost, the thread aborts NCCL's kernels, the device continues, and Check() says why.
// The device counts the collectives that it enters, and the thread reports them to the Communicator. So a rank whose
// host or device is late for a collective counts as lost, as it would without a device.
#pragma once

#include <memory>

#include "engine/comm/nccl/device_communicator.h"
#include "engine/comm/nccl/nccl.h"

namespace ridgeline::engine {

// Called by every rank at the same place among its collectives. The device that it is to use must be current; no two
// ranks may share one. The Communicator and the library must outlive it. Throws Error(kInfrastructure) for NCCL's
// failures and, if a rank is lost, with the reason.
std::unique_ptr<DeviceCommunicator> ConnectNccl(const Nccl& nccl, Communicator& ranks);

}  // namespace ridgeline::engine
