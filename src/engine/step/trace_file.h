// A timeline as the files of other tools. NAME.json: Chrome's trace events, a row a stream, which Perfetto opens.
// NAME.et: an execution trace of MLCommons Chakra, schema 0.0.4, which ASTRA-sim feeds to its simulator
// (docs/prediction.md says what of a step stands in which of its attributes).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "engine/step/timeline.h"
#include "ridgeline/run.h"

namespace ridgeline {

// What a trace is of.
struct TraceAbout {
  std::string title;                         // "llama-1b, bf16, batch 4 of 2048"
  std::string provenance;                    // "measured", or "predicted" and how
  std::map<std::string, std::string> facts;  // device, point, …
};

// What a step is, in words.
std::string TraceTitle(const RunSpec& spec);

std::string ChromeTrace(const Timeline& timeline, const TraceAbout& about);
std::string ChakraTrace(const Timeline& timeline, const TraceAbout& about);

// Throws Error(kUsage) for a name that ends neither in .json nor in .et: before anything is run for it.
void RequireTraceName(const std::filesystem::path& file);

// Whole, or not at all. Throws Error(kInfrastructure) where it cannot be written.
void WriteTraceFile(const std::filesystem::path& file, const Timeline& timeline, const TraceAbout& about);

}  // namespace ridgeline
