// The launcher plugin ABI: how the harness talks to Slurm, to Kubernetes or to this machine.
//
// A launcher is a shared library `ridgeline-launcher-NAME.so` that exports ridgeline_launcher(). Only JSON bytes cross
// the boundary: no C++ types, no exceptions. Every call takes a request document and returns a reply document. The
// launcher allocates the reply, and the caller gives it back to the launcher's `free`. A call returns 0 on success.
// Otherwise it returns 1 and the reply is
//   {"kind": "usage|invalid_input|infrastructure", "message": "…", "hint": "…", "retry": bool}
// With "retry": true the failure is temporary: the harness calls again later, for as long as it is willing to wait.
//
// `open` makes a session of one configuration and one state folder, `close` ends it, and every other call but
// `describe` belongs to one. A job is
//   {"key", "sweep", "job_file", "job_dir", "nodes", "cpus", "memory_bytes", "time_limit_s", "save_time_s",
//    "own_trainer", "exec": [argv…], "avoid": ["node"…], "config": {…}}
//   key           deterministic and unique. Submitting a key that exists must find that job, never start a second one
//   job_dir       its folder; job_dir.h says what is in it
//   exec          `ridgeline exec JOB.json`. To run the job is to run this on each of its nodes
//   cpus, memory_bytes   of each node
//   save_time_s   if there, the job wants SIGUSR1 so many seconds before it is ended, and can then be continued
//   avoid         nodes on which other jobs failed; a launcher that can keeps the job off them
//   own_trainer   the job runs ridgeline-train, so it does not need another trainer's image
//   config        if there, the `launch:` mapping of this job, in place of the session's. Settings of the session alone
//                 (which cluster, how many jobs at once) stay as opened; a job that changes one is refused
//
//   open       {"config": {…}, "state_dir": "…"}
//                                        -> {"capabilities": ["queue" | "poll_pause" | "render" | "bulk" | "bill"…]}
//              config: the sweep's `launch:` mapping, with the most "nodes" and "cpus" that a job will have. state_dir:
//              a folder for the launcher's own files; it exists in every call but `open` and `render`. `open` checks
//              the configuration and contacts nobody. Capabilities: `queue`, the launcher takes many jobs at once and
//              runs them when it can; `poll_pause`, it says when it wants to be polled again; `render`, it has that
//              call; `bulk`, a call about many jobs costs it about as much as a call about one; `bill`, its jobs are
//              billed, and `probe` says what still is. Unknown names are ignored. Without `bulk`, calls begin with one
//              job, and get more while they are quick.
//   probe      {"jobs": [job…], "sweep": "…"}
//                                        -> {"available": bool, "why": "…", "description": "…", "max_jobs": int,
//                                           "retry": bool, "jobs": [{"key"} or {"key", "error"}…],
//                                           "still_billed": ["…"…]}
//              max_jobs: with a `queue`, the most jobs that it takes at once. "retry": true means, as in a failed
//              call, that the launcher is unavailable only for the moment. The request's jobs may be missing. If they
//              are there, a launcher that can asks the scheduler whether it would take them, submits nothing, and
//              answers in the reply's jobs. error: why not, as in a failed call. Other launchers answer without them.
//              sweep: needs the capability `bill`, and may be missing. still_billed: what of this sweep is billed now,
//              a text each: jobs that have not ended, whoever started them, and machines that are kept.
//   render     {"jobs": [job…]}          -> {"files": [{"name", "content"}…], "submit": "…", "fetch": "…",
//                                           "asks": ["…"…]}
//              Needs the capability `render`. files: what a person could submit by hand. submit: the command for that,
//              in which FILE stands for a file and DIR for their folder. fetch: the command that brings the results
//              into DIR, if the jobs do not write into their folders themselves. asks: what jobs ask for that they were
//              not told to, such as memory that the launcher adds, each thing once, in words. Pure: contacts nobody.
//   submit     {"jobs": [job…], "within_ms": int}
//                                        -> {"jobs": [{"key", "native_id"} or {"key", "error"} or
//                                                     {"key", "later": true}…]}
//              within_ms: after this time a launcher with `bulk` begins no more, and answers `later` for jobs that it
//              has not begun. It begins at least one. Interrupts wait for the call's end.
//              error: {kind, message, hint, retry}, as a failed call's. If the infrastructure's reason (run.h) is not
//              `start`, it is the member "reason".
//   poll_many  {"jobs": [{"key", "native_id"}…], "look": bool}
//                                        -> {"jobs": [{"key", "state", "native_id", "started_unix_s",
//                                                      "evidence": {name: text}}…], "again_ms": int}
//              One question for all jobs. again_ms: with a `poll_pause`, how long not to ask again. look: the caller
//              only looks and does not drive, so a launcher with a `queue` must not give up, fetch or remove anything.
//              state is queued, running, ended or missing; `missing`: the scheduler has never heard of the key, or has
//              forgotten it. Evidence of an ended job may have
//                "end"           oom_host, timeout, cancelled or infrastructure (run.h): what a scheduler can know.
//                                Only `exec` knows whether a trainer is at fault, and on several nodes not even exec
//                "reason"        the reason, if "end" is infrastructure
//                "node"          the names of its nodes, separated by spaces, or of the one that failed
//                "ended_unix_s"  when it ended, in decimal
//                "billed_nodes", "billed_s"  for how many machines the job is billed, and for how many seconds each, in
//                                decimal. Missing where a job is not billed by its time. "0" if it costs nothing
//                "may_bill_s"    at most so many seconds more may be billed, such as for machines that are kept
//                "used_s"        for how many seconds the job had the machines, if it is billed for fewer
//                "message", "hint"  for people
//              Evidence of a running or ended job may have
//                "log_problem"   why its log could not be read, or not all of it
//              Evidence of a queued job may have
//                "pending"       the scheduler's own word for why it waits
//                "expected_unix_s"  when the scheduler expects to start it, in decimal
//                "waits", "hint"  why it waits, if somebody should do something about it
//                "waits_for"     the same text for all jobs that wait for the same thing, even if their "waits" differ
//                "no_node"       in the scheduler's words, that no node exists, free or busy, that could run it
//   cancel     {"jobs": [{"key", "native_id"}…]} -> {"jobs": [{"key", "cancelled": bool}…]}
//
//   describe   {"config": {…}, "own_trainer": bool, "trainer": "…", "has_time_limit": bool, "time_limit_s": int,
//               "nodes": int, "node": "…"}
//                                        -> {"here": bool, "srun": bool, "memory_bytes": int, "pin": {…},
//                                            "gpus": {"setting": "…", "asked": "…", "kind": "…", "count": int},
//                                            "billed": {"nodes": int, "most_s": int},
//                                            "secrets": "…", "warnings": ["…"…]}
//              What a job asks for, of which the harness does not read the launcher's own settings. Needs no session,
//              is pure, and counts values that it cannot read as not given: `open` and `render` refuse those.
//              config: the job's `launch:` mapping. trainer: the name of its trainer's definition, if it has one.
//              time_limit_s: 0 if there is none, or if it is not known yet.
//              Every member of the reply may be missing.
//                here          jobs run on this machine
//                srun          Slurm's srun can start a job's processes
//                memory_bytes  of a node
//                pin           if there is a "node": what to merge (RFC 7396) into the launcher's own mapping so that
//                              the job runs on that node; {} if the mapping names a node already. Missing if the
//                              launcher cannot
//                gpus          of a node. setting: the one that asks, or, if none does, that would ("slurm: gpus").
//                              asked: what it asks for, in words; empty if nothing asks. kind: empty if any. count: 0
//                              if it is not known. Missing if jobs have whatever GPUs are there, without asking
//                billed        for how many machines a job is billed, and for how many seconds each at most, with the
//                              time that they are kept afterwards. Missing if jobs are not billed by their time
//                secrets       how a job gets a secret, in words
//                warnings      what is odd about what the job asks for, in words
//
// Thread safety: the harness calls a launcher from one thread at a time.
#ifndef RIDGELINE_LAUNCHER_H_
#define RIDGELINE_LAUNCHER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIDGELINE_LAUNCHER_ABI_VERSION 3u

typedef struct ridgeline_launcher_session ridgeline_launcher_session;  // the launcher's own

// Sets *session if it returns 0.
typedef int (*ridgeline_launcher_open)(const char* request, size_t request_size, ridgeline_launcher_session** session,
                                       char** reply, size_t* reply_size);
typedef int (*ridgeline_launcher_call)(ridgeline_launcher_session* session, const char* request, size_t request_size,
                                       char** reply, size_t* reply_size);

typedef int (*ridgeline_launcher_describe)(const char* request, size_t request_size, char** reply, size_t* reply_size);

typedef struct ridgeline_launcher_table {
  uint32_t abi_version;  // RIDGELINE_LAUNCHER_ABI_VERSION the plugin was compiled with
  uint32_t table_size;   // sizeof(ridgeline_launcher_table) the plugin was compiled with
  const char* name;      // "local", "slurm", …
  const char* version;   // the plugin's own version
  ridgeline_launcher_open open;
  void (*close)(ridgeline_launcher_session* session);
  ridgeline_launcher_call probe;
  ridgeline_launcher_call render;
  ridgeline_launcher_call submit;
  ridgeline_launcher_call poll_many;
  ridgeline_launcher_call cancel;
  void (*free)(char* reply);
  ridgeline_launcher_describe describe;
} ridgeline_launcher_table;

// The one exported function. `harness_abi_version` is the version that the harness speaks. A plugin of another version
// returns a table with its own abi_version, and the harness refuses it with a sentence.
typedef const ridgeline_launcher_table* (*ridgeline_launcher_entry)(uint32_t harness_abi_version);

#ifdef __cplusplus
}
#endif

#endif  // RIDGELINE_LAUNCHER_H_
