// Requests and answers as pages know them, whatever carries them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ridgeline {

// Of an address, what stands behind its question mark, in order.
using QueryValues = std::vector<std::pair<std::string, std::string>>;

struct PageRequest {
  std::string path;  // decoded: "/runs"
  QueryValues query;
  std::string accept;  // the header

  // The first value of that name; empty where there is none.
  std::string Value(std::string_view name) const;
  std::vector<std::string> Values(std::string_view name) const;
};

struct PageAnswer {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body;
  std::string policy;     // Content-Security-Policy
  std::string file_name;  // where it is to be kept as a file
};

// An address of ours: the path's parts, each whatever it is, and the values that are not empty. Not escaped for HTML.
std::string AddressOf(const std::vector<std::string>& parts, const QueryValues& values = {});

}  // namespace ridgeline
