// Requests and answers as pages use them, independent of the transport.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ridgeline::serve {

// The values behind an address's question mark, in order.
using QueryValues = std::vector<std::pair<std::string, std::string>>;

struct PageRequest {
  std::string path;  // decoded, without the base path: "/runs"
  QueryValues query;
  // Headers.
  std::string accept;
  std::string accept_encoding = {};
  std::string if_none_match = {};

  // The first value of that name; empty if there is none.
  std::string Value(std::string_view name) const;
  std::vector<std::string> Values(std::string_view name) const;
};

struct PageAnswer {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body;
  std::string policy;     // Content-Security-Policy
  std::string location;   // address of another page to request instead, with status 302
  std::string file_name;  // name of the file, if the answer is to be saved as one
  std::string encoding;   // the body's: "gzip"; empty: none
  std::string etag;       // with its quotes; empty: not to be cached
  bool varies = false;    // depends on the request's accept_encoding
  // Whether it depends only on the database and, for a report, on the report's files.
  bool is_lasting = false;
};

// Addresses of the site's own pages.
class Links {
 public:
  // `base`: the prefix that a proxy puts before each of them: "/ridgeline". Empty: none.
  explicit Links(std::string base = {}) : base_(std::move(base)) {}
  const std::string& base() const { return base_; }

  // An address from the path's parts, with any content, and the values that are not empty. Not escaped for HTML.
  std::string operator()(const std::vector<std::string>& parts, const QueryValues& values = {}) const;

 private:
  std::string base_;
};

}  // namespace ridgeline::serve
