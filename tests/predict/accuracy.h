// How far the clock is from what was published and measured: the tables of docs/prediction-accuracy.md, from stored
// data alone. bench/prediction/accuracy prints them, and a test holds the page to them.
#pragma once

#include <string>
#include <vector>

#include "tests/predict/published.h"

namespace ridgeline {

// Rows of programs that share their core are one's: torchtitan, megatron (NeMo and Megatron-Bridge), maxtext, fms-fsdp.
std::string ProgramOf(const PublishedRow& row);

// |ln(published / predicted)| and what it is of.
struct Miss {
  const PublishedStep* step = nullptr;
  double ratio = 1;  // tokens/s, predicted / published
};

// What each row is predicted as with shares that other rows set: none of the same program; none of the same program and
// GPU; none of the same program, GPU or both anywhere; none of the same program, model, GPU and format.
std::vector<Miss> WithoutProgram(const std::vector<PublishedStep>& steps);
std::vector<Miss> WithoutGpuOfProgram(const std::vector<PublishedStep>& steps);
std::vector<Miss> WithoutProgramAndGpu(const std::vector<PublishedStep>& steps);
std::vector<Miss> WithoutConfiguration(const std::vector<PublishedStep>& steps);

// Of this engine's ten steps on an H200: each way to set the shares by five of them and predict the other five.
struct Halving {
  double mean_error = 0;  // of the five that set nothing, of both halves in turn: ten predictions
  double worst_error = 0;
  std::vector<Miss> held = {};
};
std::vector<Halving> Halvings(const std::vector<PublishedStep>& measured);

// The factor within which 90 of 100 lie, of few of them the next larger one: the ceil(0.9 (n + 1))th of n.
double FactorOf90(std::vector<Miss> misses);

struct AccuracyTable {
  std::string name;
  std::string markdown;  // as the page has it
};
std::vector<AccuracyTable> AccuracyTables();

}  // namespace ridgeline
