// Ranks with a CUDA device each, over NCCL: NVLink, the network or this machine's memory, as NCCL finds them.
//
// The order in which NCCL adds is its own: it depends on the ranks' number, their machines and the size, so sums are
// compared with other devices' and other numbers of ranks within a tolerance. A mean is of values that NCCL multiplies
// by 1 / world before it adds them.
//
// The ranks meet over their Communicator: rank 0's id of the new group of devices goes round there, among ranks that
// have proved to each other that they know the job's secret. With that id NCCL makes connections of its own, which are
// neither proved again nor encrypted: who can read the packets between two nodes can join. NCCL_SOCKET_IFNAME says on
// which network it does so.
//
// A device waits for a rank that is gone for ever, and so does who waits for the device. So a thread watches: when the
// Communicator knows that a rank is lost, it aborts NCCL's kernels, the device goes on, and Check() says why. The
// device counts the collectives that it enters, and the Communicator is told, so that a rank whose host or device is
// late for one counts as lost as it would without a device.
#pragma once

#include <memory>

#include "engine/comm/nccl/device_communicator.h"
#include "engine/comm/nccl/nccl.h"

namespace ridgeline {

// Called by every rank at the same place among its collectives, with the device current that it is to use; no two ranks
// may have one. The Communicator must outlive it, as must the library. Throws Error(kInfrastructure) for what NCCL
// cannot do, and why a rank is lost where one is.
std::unique_ptr<DeviceCommunicator> ConnectNccl(const Nccl& nccl, Communicator& ranks);

}  // namespace ridgeline
