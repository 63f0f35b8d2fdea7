// Readings as JSON, in which a node tells the first node about its log.
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "ridgeline/json_fault.h"
#include "run/result.h"
#include "trainers/reading.h"

namespace ridgeline::trainers {
namespace {

constexpr size_t kMostSentences = 64;
constexpr size_t kMaxSentenceBytes = 1024;

constexpr std::array<std::pair<const char*, int64_t FoundMetric::*>, 5> kCounts = {{
    {"matches", &FoundMetric::matches},
    {"first_line", &FoundMetric::first_line},
    {"last_line", &FoundMetric::last_line},
    {"unread", &FoundMetric::unread},
    {"left_out", &FoundMetric::left_out},
}};

Json EncodeFound(const Trainer& trainer, const FoundMetric& found) {
  Json json = {{"metric", found.metric - trainer.metrics.data()}, {"values", found.values}};
  if (found.unit != found.metric->unit->kept) json["unit"] = found.unit;
  if (!found.all.empty()) json["all"] = found.all;
  if (!found.steps.empty()) json["steps"] = found.steps;
  if (!found.covers.empty()) json["covers"] = found.covers;
  if (found.is_by_moment) json["is_by_moment"] = true;
  if (!found.by_rank.empty()) json["by_rank"] = found.by_rank;
  if (!found.text.empty()) json["text"] = found.text;
  for (const auto& [name, member] : kCounts) json[name] = found.*member;
  return json;
}

std::string Sentence(const Json& json) { return ShortenToBytes(json.get<std::string>(), kMaxSentenceBytes); }

std::vector<std::string> Sentences(const Json& list) {
  std::vector<std::string> sentences;
  for (const Json& item : list) {
    if (sentences.size() == kMostSentences) break;
    sentences.push_back(Sentence(item));
  }
  return sentences;
}

double Number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

FoundMetric DecodeFound(const Trainer& trainer, const Json& json, size_t& room) {
  FoundMetric found;
  found.metric = &trainer.metrics.at(json.at("metric").get<size_t>());
  found.unit = ShortenToBytes(json.value("unit", std::string(found.metric->unit->kept)), kMaxSentenceBytes);
  for (const Json& value : json.at("values")) found.values.push_back(Number(value));
  found.all = json.value("all", found.all);
  found.steps = json.value("steps", found.steps);
  found.covers = json.value("covers", found.covers);
  found.is_by_moment = json.value("is_by_moment", false);
  found.by_rank = json.value("by_rank", found.by_rank);
  if (json.contains("text")) found.text = Sentence(json.at("text"));
  for (const auto& [name, member] : kCounts) found.*member = json.at(name).get<int64_t>();
  const std::vector<double>& values = found.all.empty() ? found.values : found.all;
  const auto fits = [&](const std::vector<int64_t>& list) { return list.empty() || list.size() == values.size(); };
  const bool is_something = !found.values.empty() || !found.text.empty();
  if (!is_something || !fits(found.steps) || !fits(found.covers) || values.size() > room) {
    throw Error(ErrorKind::kInvalidInput, "its values do not fit its steps");
  }
  room -= values.size();
  return found;
}

Json EncodeEnd(const LogEnd& end) {
  return {{"end", StatusName(end.end.status)},
          {"reason", end.end.reason == InfrastructureReason::kNone ? "" : ReasonName(end.end.reason)},
          {"message", end.message},
          {"hint", end.hint},
          {"line", end.line}};
}

LogEnd DecodeEnd(const Json& json) {
  LogEnd end;
  end.end = EndFromNames(json.at("end").get<std::string>(), json.at("reason").get<std::string>());
  end.message = Sentence(json.at("message"));
  end.hint = Sentence(json.at("hint"));
  end.line = json.at("line").get<int64_t>();
  return end;
}

}  // namespace

Json EncodeReading(const Trainer& trainer, const Reading& reading) {
  Json found = Json::array();
  for (const FoundMetric& metric : reading.found) found.push_back(EncodeFound(trainer, metric));
  return {{"found", std::move(found)},
          {"missing", reading.missing},
          {"end", reading.end ? EncodeEnd(*reading.end) : Json()},
          {"contradictions", reading.contradictions},
          {"notes", reading.notes},
          {"lines", reading.lines}};
}

Reading DecodeReading(const Trainer& trainer, const Json& document) {
  try {
    Reading reading;
    auto room = static_cast<size_t>(kMostValues);
    for (const Json& found : document.at("found")) {
      if (reading.found.size() == kMostMetrics) throw Error(ErrorKind::kInvalidInput, "it has too many metrics");
      reading.found.push_back(DecodeFound(trainer, found, room));
    }
    for (const Json& name : document.at("missing")) {
      if (reading.missing.size() < kMostMetrics) reading.missing.push_back(Sentence(name));
    }
    if (!document.at("end").is_null()) reading.end = DecodeEnd(document.at("end"));
    reading.contradictions = Sentences(document.at("contradictions"));
    reading.notes = Sentences(document.at("notes"));
    reading.lines = document.at("lines").get<int64_t>();
    return reading;
  } catch (const Error&) {
    throw;
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("a reading of trainer {} is malformed: {}", trainer.name, JsonFault(e)));
  } catch (const std::exception& e) {  // for a missing metric
    throw Error(ErrorKind::kInvalidInput, std::string("a reading of trainer ") + trainer.name +
                                              " is malformed: " + ShortenToBytes(e.what(), kMaxSentenceBytes));
  }
}

}  // namespace ridgeline::trainers
