// How far the step model is from published and measured figures: the tables of docs/prediction-accuracy.md, from stored
// data only. bench/prediction/accuracy prints them, and a test checks the page against them.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/predict/published.h"

namespace ridgeline::predict {

// The program of a row. Programs that share their core count as one: torchtitan, megatron (NeMo and Megatron-Bridge),
// maxtext, fms-fsdp.
std::string ProgramOf(const PublishedRow& row);

// A step and its error, |ln(published / predicted)|.
struct Miss {
  const PublishedStep* step = nullptr;
  double ratio = 1;     // tokens/s, predicted / published
  double widening = 1;  // from the nearest step that corrected it (framework.h)
  // The error as one at the size of that step.
  double at_size() const { return std::abs(std::log(ratio)) / widening; }
};

// Predicts each row with shares that other rows set. These leave out, in turn, rows of the same program; of the same
// program and GPU; of the same program, of the same GPU or of both; and of the same program, model, GPU and format.
std::vector<Miss> WithoutProgram(const std::vector<PublishedStep>& steps);
std::vector<Miss> WithoutGpuOfProgram(const std::vector<PublishedStep>& steps);
std::vector<Miss> WithoutProgramAndGpu(const std::vector<PublishedStep>& steps);
std::vector<Miss> WithoutConfiguration(const std::vector<PublishedStep>& steps);

// Ten steps of this engine on an H200: five set the shares, and the other five are predicted, for each way to choose
// five.
struct Halving {
  double mean_error = 0;  // of the five that set nothing, for both halves in turn: ten predictions
  double worst_error = 0;
  std::vector<Miss> held = {};
};
std::vector<Halving> Halvings(const std::vector<PublishedStep>& measured);

// The factor within which 90 of 100 lie, without their widening: the ceil(0.9 (n + 1))th of n, so the next larger one
// if there are few.
double FactorOf90(std::vector<Miss> misses);

struct AccuracyTable {
  std::string name;
  std::string markdown;  // as on the page
};
std::vector<AccuracyTable> AccuracyTables();

}  // namespace ridgeline::predict
