// Ranks as processes, on one machine or several, over Gloo's TCP transport.
//
// They connect in private. Whoever connects to a rank must first prove that he knows the job's secret (handshake.h),
// behind a port that costs little (authenticated_listener.h). Only then does Gloo get the connection (ring_context.h,
// which says what this keeps from whom, and what it does not). The ports are closed before the first collective.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/comm/gloo/rank_environment.h"

namespace ridgeline::engine {

// Connects this process with the other ranks; returns when all are connected, also the groups along the axes of the
// mesh. REQUIRES: the mesh has the place's number of ranks, and is the same on every rank. `identity` names what must
// be equal on every rank: otherwise, every rank throws Error(kInvalidInput) that says which rank differs in what.
// Throws Error(kInfrastructure) if ranks do not come within the time limit.
//
// The two large collectives are rings. A rank receives from the one before it and sends to the one after it, in
// segments, and adds them up in an order that depends only on the ranks. Each group of the mesh has such a ring.
// Besides the caller's memory, a communicator has a few segments of its own.
std::unique_ptr<Communicator> ConnectGloo(const RankEnvironment& place,
                                          const std::map<std::string, std::string>& identity, const Mesh& mesh);
// The same for ranks along one axis.
inline std::unique_ptr<Communicator> ConnectGloo(const RankEnvironment& place,
                                                 const std::map<std::string, std::string>& identity) {
  return ConnectGloo(place, identity, Mesh({.shard = place.world}));
}

}  // namespace ridgeline::engine
