// PyTorch's casts of numbers to 8 bits (E4M3, E5M2). FORMAT_values.csv has every code's value. FORMAT_round.csv has the
// codes of numbers around every boundary, rounded to nearest even (torch 2, Tensor.to(torch.float8_e4m3fn) and
// float8_e5m2).
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/precision/formats.h"
#include "tests/source_dir.h"

namespace ridgeline::engine {

struct Cast {
  float value;
  uint8_t code;
};

inline std::vector<std::string> RowsOf(Format format, const char* table) {
  const std::string name = format == Format::kE4M3 ? "e4m3" : "e5m2";
  const std::string path = SourceDir() + "/tests/engine/precision/" + name + "_" + table + ".csv";
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::vector<std::string> rows;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) rows.push_back(line);
  return rows;
}

// The value of every code.
inline std::vector<Cast> CodeValues(Format format) {
  std::vector<Cast> casts;
  for (const std::string& line : RowsOf(format, "values")) {
    const size_t comma = line.find(',');
    casts.push_back({std::strtof(line.c_str() + comma + 1, nullptr), static_cast<uint8_t>(std::stoi(line))});
  }
  return casts;
}

// Numbers and the codes that they are rounded to.
inline std::vector<Cast> RoundedCodes(Format format) {
  std::vector<Cast> casts;
  for (const std::string& line : RowsOf(format, "round")) {
    const size_t comma = line.find(',');
    casts.push_back({std::bit_cast<float>(static_cast<uint32_t>(std::stoul(line, nullptr, 16))),
                     static_cast<uint8_t>(std::stoi(line.substr(comma + 1)))});
  }
  return casts;
}

}  // namespace ridgeline::engine
