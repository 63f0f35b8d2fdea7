// Figures of the nights for Prometheus.
#pragma once

#include <string>
#include <vector>

#include "regress/nights.h"

namespace ridgeline::nightly {

// The figures of `last`, and of the nights of its sweep, as Prometheus' text. A figure that is unknown is left out.
std::string NightlyMetrics(std::vector<regress::Night> nights, const regress::Night& last);

}  // namespace ridgeline::nightly
