#include "engine/train/history.h"

#include <algorithm>
#include <cmath>

namespace ridgeline::engine {

std::vector<int64_t> SteadySteps(const RunSpec& spec, const History& history) {
  const int64_t last = history.steps();
  std::vector<int64_t> steady;
  for (size_t p = 0; p < history.processes.size(); ++p) {
    const History::Process& process = history.processes[p];
    if (process.machine != history.processes.back().machine) continue;
    const int64_t end = p + 1 < history.processes.size() ? history.processes[p + 1].first_step : last + 1;
    for (int64_t step = process.first_step + spec.warmup_steps; step < end; ++step) {
      steady.push_back(history.step_ns[static_cast<size_t>(step - 1)]);
    }
  }
  if (steady.empty() && last > spec.warmup_steps) {
    steady.assign(history.step_ns.begin() + spec.warmup_steps, history.step_ns.end());
  }
  return steady;
}

Json EncodeHistory(const History& history) {
  Json processes = Json::array();
  for (const History::Process& process : history.processes) {
    processes.push_back({{"first_step", process.first_step}, {"machine", process.machine}});
  }
  return {
      {"loss", history.loss}, {"grad_norm", history.grad_norm}, {"step_ns", history.step_ns}, {"processes", processes}};
}

History DecodeHistory(const Json& document) {
  History history;
  document.at("loss").get_to(history.loss);
  // JSON has no infinity, so a norm that overflowed is stored as null.
  for (const Json& norm : document.at("grad_norm"))
    history.grad_norm.push_back(norm.is_null() ? NAN : norm.get<double>());
  document.at("step_ns").get_to(history.step_ns);
  for (const Json& process : document.at("processes")) {
    history.processes.push_back({process.at("first_step").get<int64_t>(), process.at("machine").get<std::string>()});
  }
  return history;
}

}  // namespace ridgeline::engine
