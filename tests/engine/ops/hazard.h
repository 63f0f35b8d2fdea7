// Checks that a kernel touches only what its call declares.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "engine/device/trace.h"

namespace ridgeline::engine {

// NaN in every dtype of numbers, or small numbers that differ in every place. Setting single bytes would take a
// sanitizer minutes over a large slab.
inline void FillWithPoison(std::span<std::byte> bytes, bool nan) {
  if (nan) {
    std::memset(bytes.data(), 0xff, bytes.size());
    return;
  }
  std::array<std::byte, 64 * 256> period;
  for (size_t i = 0; i < period.size(); ++i) period[i] = static_cast<std::byte>((i * 37 + i / 256) % 64);
  for (size_t at = 0; at < bytes.size(); at += period.size()) {
    std::memcpy(bytes.data() + at, period.data(), std::min(period.size(), bytes.size() - at));
  }
}

// Runs a call twice over a slab. Every byte that the call does not declare to read is poison, of another kind each
// time. Fails the test if the call changes a byte that it does not declare to write or use as scratch. Also fails it if
// the written data depend on the poison: the call then reads undeclared data, or leaves a part of a result unwritten.
// Afterwards the results are written, the scratch is poison, and the rest of the slab is unchanged.
inline void RunOnWhatItDeclares(const OpCall& call, const int64_t* offsets, std::span<std::byte> slab,
                                const std::function<void()>& run) {
  struct Range {
    size_t begin, size;
  };
  const auto ranges_of = [&](std::initializer_list<std::span<const Tensor>> groups) {
    std::vector<Range> ranges;
    for (const std::span<const Tensor> group : groups) {
      for (const Tensor& tensor : group) {
        if (!tensor.defined()) continue;
        const int64_t element = SizeOf(tensor.dtype);
        for (int64_t row = 0; row < tensor.rows; ++row) {
          const int64_t begin = offsets[tensor.storage] + (tensor.offset + row * tensor.row_stride) * element;
          ranges.push_back({static_cast<size_t>(begin), static_cast<size_t>(tensor.cols * element)});
        }
      }
    }
    return ranges;
  };
  const auto copy = [](std::span<const std::byte> from, std::span<std::byte> to, const std::vector<Range>& ranges) {
    for (const Range& range : ranges) std::memcpy(to.data() + range.begin, from.data() + range.begin, range.size);
  };
  const auto reads = ranges_of({call.reads()});
  const auto writes = ranges_of({call.writes()});
  const auto scratch = ranges_of({call.scratch()});
  const auto changes = ranges_of({call.writes(), call.scratch()});

  // Reused from call to call: new pages for each were a tenth of the time of all calls.
  thread_local std::vector<std::byte> before;
  thread_local std::vector<std::byte> expected;
  thread_local std::vector<std::byte> first;  // the data written with the first kind of poison
  before.assign(slab.begin(), slab.end());
  expected.resize(slab.size());
  first.resize(slab.size());
  for (const bool nan : {true, false}) {
    FillWithPoison(expected, nan);
    copy(before, expected, reads);
    std::memcpy(slab.data(), expected.data(), slab.size());
    run();
    copy(slab, expected, changes);
    if (std::memcmp(slab.data(), expected.data(), slab.size()) != 0) {
      const auto [changed, _] = std::ranges::mismatch(slab, expected);
      FAIL() << call.op->name << " changed byte " << changed - slab.begin()
             << " of the slab, which it does not declare";
    }
    if (nan) copy(slab, first, writes);
    for (const Range& range : writes) {
      ASSERT_EQ(std::memcmp(slab.data() + range.begin, first.data() + range.begin, range.size), 0)
          << call.op->name << " made bytes " << range.begin << " and on of the slab of what it does not declare";
    }
  }
  std::memcpy(slab.data(), before.data(), slab.size());
  for (const Range& range : scratch) std::memset(slab.data() + range.begin, 0xff, range.size);
  copy(first, slab, writes);
}

}  // namespace ridgeline::engine
