// How long the driver waits, how often it tries, and how much it submits at once. All such numbers are here, except
// those that a sweep sets (`retry`, `bundle`, `max_parallel`, `launcher_timeout`). They keep the harness out of the
// way. They change neither what is measured nor for how long the driver puts up with a cluster.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ridgeline::driver {

// For jobs that a launcher refuses or does not answer. A launcher without room says so, and is then asked for up to
// `launcher_timeout`. These numbers are for other refusals: a few more tries are worthwhile, and many rarely help.
inline constexpr int kSubmitTries = 3;               // of one job
inline constexpr int kRefusedJobsInARow = 3;         // after so many, the launcher counts as down
inline constexpr int64_t kTryAgainNs = 500'000'000;  // doubled with each try
inline constexpr int64_t kMostTryAgainNs = 30'000'000'000;
inline constexpr int64_t kRunAgainNs = 2'000'000'000;  // of a point whose infrastructure failed; doubled too
inline constexpr int64_t kMostRunAgainNs = 300'000'000'000;

// Calls about many jobs (batch.h).
inline constexpr size_t kMostAtOnce = 1000;            // jobs; a launcher that works in bulk gets so many at once
inline constexpr size_t kBatchGrowth = 8;              // after a quick call
inline constexpr int64_t kQuickCallNs = 250'000'000;   // at most
inline constexpr int64_t kSlowCallNs = 1'000'000'000;  // the next call is about fewer jobs

// Submitting.
inline constexpr int64_t kRefillShare = 10;     // submits a tenth of the jobs that a launcher may have together
inline constexpr double kSharedJobSeconds = 1;  // of short points that share a job
inline constexpr int64_t kMostSharedPoints = 128;

// Asking. A launcher that wants to be left alone says for how long.
inline constexpr int64_t kShortestWaitNs = 2'000'000;  // between two turns of the loop
inline constexpr int64_t kLongestWaitNs = 250'000'000;
inline constexpr int64_t kAskShare = 125;                    // those who only look ask for 0.8% of the time
inline constexpr int64_t kMostPauseNs = 30'000'000'000;      // even if one question took long: the next may not
inline constexpr int64_t kMissingNs = 2'000'000'000;         // a scheduler may know a new job late
inline constexpr int64_t kPartialCollectNs = 500'000'000;    // results of a job that still runs
inline constexpr int64_t kSingleCollectNs = 10'000'000'000;  // the same for a job of one point in a queue
// A network file system may show this late what a node wrote: NFS remembers for a minute that a file is missing.
inline constexpr int64_t kLinesMayComeNs = 65'000'000'000;
// A node has failed in a point while other nodes go on. The others have this long to report how it ended for them.
inline constexpr int64_t kBrokenGangNs = 60'000'000'000;
// A point has ended well on its first node. The others have this long to report how it ended for them; then they count
// as hung.
inline constexpr int64_t kOthersEndNs = 600'000'000'000;
// A job that has a result of every point and still runs this long hangs, or its node does. It is waited for no longer.
inline constexpr int64_t kDoneButRunningNs = 60'000'000'000;

// Ending. When a login ends, systemd sends SIGTERM and at once SIGHUP, which leaves jobs alone.
inline constexpr int64_t kSecondSignalNs = 200'000'000;
// More than `ridgeline exec` or a scheduler gives a trainer to end.
inline constexpr int64_t kCancelPatienceNs = 40'000'000'000;

// The database's lock may be held for a moment without a named driver: by a child of a driver that was killed between
// fork and exec, by a driver that has not written its name yet, or by a JobStatusReader while a scheduler answers.
inline constexpr int64_t kLockPatienceNs = 60'000'000'000;
inline constexpr int64_t kLookAtLockAgainNs = 5'000'000;

}  // namespace ridgeline::driver
