// A timeline in the file formats of other tools. NAME.json: Chrome's trace events, one row a stream, which Perfetto
// opens. NAME.et: an execution trace of MLCommons Chakra, schema 0.0.4, which ASTRA-sim feeds to its simulator
// (docs/prediction.md says which attribute holds what).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "engine/step/timeline.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// What a trace describes.
struct TraceAbout {
  std::string title;                         // "llama-1b, bf16, batch 4 of 2048"
  std::string provenance;                    // "measured", or "predicted" and how
  std::map<std::string, std::string> facts;  // device, point, …
};

// Describes a step in words.
std::string TraceTitle(const RunSpec& spec);

std::string ChromeTrace(const Timeline& timeline, const TraceAbout& about);
std::string ChakraTrace(const Timeline& timeline, const TraceAbout& about);

// Throws Error(kUsage) if a name ends neither in .json nor in .et. Called before anything runs for it.
void RequireTraceName(const std::filesystem::path& file);

// Writes the whole file or nothing. Throws Error(kInfrastructure) if it cannot be written.
void WriteTraceFile(const std::filesystem::path& file, const Timeline& timeline, const TraceAbout& about);

}  // namespace ridgeline::engine
