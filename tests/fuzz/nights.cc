// A night's record and a gate's findings are read whole or refused. What was read has an answer and a place among the
// nights, and is written as it was read.
#include "regress/nights.h"

#include "base/json.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  static const fuzz::Folder folder;
  std::filesystem::create_directories(folder.path() / "night");
  folder.Write("night/night.json", fuzz::TextOf(data, size));
  std::vector<std::string> problems;
  const std::vector<regress::Night> nights = regress::ReadNights(folder.path(), &problems);
  fuzz::Require(nights.size() + problems.size() == 1, "a record is read or refused");
  if (!nights.empty()) {
    fuzz::Require(!regress::NightAnswer(nights[0]).empty(), "a night has an answer");
    fuzz::Require(regress::NightWords(nights[0]).size() <= nights[0].words.size(),
                  "the shortened words are not longer");
    regress::NightAt(nights, "nights", 1'770'000'000'000'000'000);
    regress::VoidOf(nights);
    regress::LeftOutOf(nights);
    regress::WriteNight(nights[0], folder.path());
    const std::vector<regress::Night> again = regress::ReadNights(folder.path(), &problems);
    fuzz::Require(again.size() == 1 && again[0].worse == nights[0].worse && again[0].lost == nights[0].lost &&
                      regress::NightAnswer(again[0]) == regress::NightAnswer(nights[0]),
                  "a night is read as written");
  }
  fuzz::Takes([&] {
    const Json gate = ParseJson(fuzz::TextOf(data, size), "gate.json");
    regress::MeasuredAnything(gate);
    regress::AnythingFailedOnce(gate);
    regress::WorseCells(gate);
    regress::LostCells(gate);
  });
  return 0;
}
