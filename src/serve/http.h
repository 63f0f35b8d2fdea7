// Requests and answers as pages know them, whatever carries them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ridgeline {

// Of an address, what stands behind its question mark, in order.
using QueryValues = std::vector<std::pair<std::string, std::string>>;

struct PageRequest {
  std::string path;  // decoded, without the base path: "/runs"
  QueryValues query;
  // Headers.
  std::string accept;
  std::string accept_encoding = {};
  std::string if_none_match = {};

  // The first value of that name; empty where there is none.
  std::string Value(std::string_view name) const;
  std::vector<std::string> Values(std::string_view name) const;
};

struct PageAnswer {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body;
  std::string policy;     // Content-Security-Policy
  std::string location;   // of another page that is to be asked for instead, with status 302
  std::string file_name;  // where it is to be kept as a file
  std::string encoding;   // of the body: "gzip"; empty: none
  std::string etag;       // with its quotes; empty: it is not to be kept
  bool varies = false;    // with the request's accept_encoding
  // Whether the database, and the report's files for a report, are all that it depends on.
  bool is_lasting = false;
};

// Addresses of the site's own pages.
class Links {
 public:
  // `base`: what a proxy has before each of them: "/ridgeline". Empty: nothing.
  explicit Links(std::string base = {}) : base_(std::move(base)) {}
  const std::string& base() const { return base_; }

  // The path's parts, whatever is in them, and the values that are not empty. Not escaped for HTML.
  std::string operator()(const std::vector<std::string>& parts, const QueryValues& values = {}) const;

 private:
  std::string base_;
};

}  // namespace ridgeline
