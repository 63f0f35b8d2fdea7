// The answer to a request that failed: an error of libslurm or of the system, or 0 if the request was not understood.
#pragma once

#include <cerrno>
#include <exception>
#include <string>
#include <utility>

#include <slurm/slurm_errno.h>

namespace ridgeline::slurm_agent {

class Failure : public std::exception {
 public:
  explicit Failure(int code) : code_(code), text_(slurm_strerror(code)) {}
  Failure(int code, std::string text) : code_(code), text_(std::move(text)) {}

  // The failure of the libslurm call just before. Some calls fail without a reason.
  static Failure OfLastCall() { return Failure(errno != 0 ? errno : SLURM_ERROR); }

  const char* what() const noexcept override { return text_.c_str(); }
  int code() const { return code_; }

 private:
  int code_;
  std::string text_;
};

}  // namespace ridgeline::slurm_agent
