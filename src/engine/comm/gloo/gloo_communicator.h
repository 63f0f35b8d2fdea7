// Ranks as processes, on one machine or several, over Gloo's TCP transport.
//
// They meet in private: whoever connects to one of them must prove that he knows the job's secret (handshake.h), is
// asked so behind a port that costs little (door.h), and is no connection of Gloo's before (ring_context.h, which says
// what this keeps from whom, and what it does not). The ports are closed before the first collective.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/comm/gloo/rank_environment.h"

namespace ridgeline {

// Connects this process with the other ranks; returns when all are connected. `identity` names what must be equal on
// every rank: where it is not, every rank throws Error(kInvalidInput) that says which rank differs in what. Throws
// Error(kInfrastructure) for ranks that do not come within the time limit.
//
// The two large collectives are rings: a rank receives from the one before it and sends to the one after it, in
// segments, and adds them up in an order that the ranks alone decide. Beside the caller's memory a communicator has a
// few segments of its own.
std::unique_ptr<Communicator> ConnectGloo(const RankEnvironment& place,
                                          const std::map<std::string, std::string>& identity);

}  // namespace ridgeline
