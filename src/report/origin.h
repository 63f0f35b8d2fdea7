// When and where a report's runs were measured.
#pragma once

#include <string>

#include "base/table.h"

namespace ridgeline::store {
class Store;
}  // namespace ridgeline::store

namespace ridgeline::report {

// "Measured 2026-11-26 to 2026-11-28 on Intel Xeon 8480C, 2 cores, NVIDIA H200.", in UTC, for the measured results of
// the answer. Empty if there are none, or if nothing is known of them. Its texts come from outside.
std::string MeasuredSentence(store::Store& store, const Table& table);

}  // namespace ridgeline::report
