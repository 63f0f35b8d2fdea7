#include "predict/export_step.h"

#include <string>

#include "engine/step/trace_file.h"
#include "predict/step_model.h"
#include "run/spec.h"

namespace ridgeline::predict {

void RequireExportName(const std::filesystem::path& file) { engine::RequireTraceName(file); }

void ExportStep(const RunSpec& spec, const Device& device, const Framework& framework,
                const std::filesystem::path& file) {
  engine::Timeline timeline;
  const auto [priced, as] = AsPriced(framework, spec);
  const StepForecast step = Forecast(CostsOf(priced, device), device, as, &timeline);
  engine::WriteTraceFile(file, timeline,
                         {engine::TraceTitle(spec),
                          std::string(ClockBasis(step.calibrated)),
                          {{"device", device.name},
                           {"framework", std::string(framework.name)},
                           {"point", PointId(spec)},
                           {"rank", "0"},
                           {"ranks", std::to_string(spec.ranks)}}});
}

}  // namespace ridgeline::predict
