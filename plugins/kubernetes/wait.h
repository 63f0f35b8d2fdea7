// Why a Job has not started, in words for people, and whether it ever will: pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {

struct Wait {
  std::string message;
  std::string hint;
  std::optional<std::chrono::seconds> patience;  // it does not start by itself, once that has lasted so long
};

// What a pod waits for that somebody should know of. `start_timeout`: the patience with what may yet get better, such
// as an image that cannot be pulled.
std::optional<Wait> WaitOf(const PodView& pod, std::chrono::seconds start_timeout);

// Why a Job gets no pod, as an event of it says.
Wait WaitOfRefusal(const std::string& event_message);

// "exceeded quota: q, requested: pods=2, used: pods=1, limited: pods=1": more is requested than the quota has in all.
bool IsBeyondQuota(const std::string& message);

}  // namespace ridgeline::kubernetes
