// How long the driver waits, how often it tries, and how much it hands over at once: all such numbers in one place, but
// for those that a sweep sets (`retry`, `bundle`, `max_parallel`, `launcher_timeout`). None of these changes what is
// measured or for how long a cluster is borne with: they keep the harness out of the way of both.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ridgeline {

// What a launcher refuses or leaves unanswered. A launcher that has no room says so, and is then asked for as long as
// `launcher_timeout`; these are of refusals that are worth another try and rarely anything else.
inline constexpr int kSubmitTries = 3;               // of one job
inline constexpr int kRefusedJobsInARow = 3;         // then the launcher is taken to be down
inline constexpr int64_t kTryAgainNs = 500'000'000;  // doubled from try to try
inline constexpr int64_t kMostTryAgainNs = 30'000'000'000;
inline constexpr int64_t kRunAgainNs = 2'000'000'000;  // of a point whose infrastructure failed; doubled too
inline constexpr int64_t kMostRunAgainNs = 300'000'000'000;

// Handing over.
inline constexpr size_t kSubmitAtOnce = 1000;   // jobs
inline constexpr int64_t kRefillShare = 10;     // of the jobs a launcher may have, that are handed over together
inline constexpr double kSharedJobSeconds = 1;  // of points that share a job for being short
inline constexpr int64_t kMostSharedPoints = 128;

// Asking. A launcher that wants to be left alone says for how long.
inline constexpr int64_t kShortestWaitNs = 2'000'000;  // between two turns of the loop
inline constexpr int64_t kLongestWaitNs = 250'000'000;
inline constexpr int64_t kAskShare = 125;                // a launcher with jobs for hours is asked for 0.8% of the time
inline constexpr int64_t kMostPauseNs = 30'000'000'000;  // even where one question took long: the next may not
inline constexpr int64_t kMissingNs = 2'000'000'000;     // a scheduler may know a new job late
inline constexpr int64_t kPartialCollectNs = 500'000'000;    // results of a job that still runs
inline constexpr int64_t kSingleCollectNs = 10'000'000'000;  // the same of a job of one point, in a queue
// A network file system may show what a node wrote this late: NFS remembers for a minute that a file is missing.
inline constexpr int64_t kLinesMayComeNs = 65'000'000'000;
// A node that has failed in a point that others are still at: they have so long to say how it ended for them.
inline constexpr int64_t kBrokenGangNs = 60'000'000'000;
// A point that has ended well on its first node: the others have so long to say how it ended for them, or they hang.
inline constexpr int64_t kOthersEndNs = 600'000'000'000;
// A job that has a result of every point and still runs hangs, or its node does: then nothing waits for it.
inline constexpr int64_t kDoneButRunningNs = 60'000'000'000;

// Ending. Where a login ends, systemd sends SIGTERM and at once SIGHUP, which leaves jobs alone.
inline constexpr int64_t kSecondSignalNs = 200'000'000;
// More than `ridgeline exec` or a scheduler gives a trainer to end.
inline constexpr int64_t kCancelPatienceNs = 40'000'000'000;

// The database's lock may be held for a moment by nobody that is at work: by a child of a driver that was killed
// between fork and exec, by a driver that has not written its name yet, or by who looks, while a scheduler answers.
inline constexpr int64_t kLockPatienceNs = 60'000'000'000;
inline constexpr int64_t kLookAtLockAgainNs = 5'000'000;

}  // namespace ridgeline
