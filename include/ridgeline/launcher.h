// The launcher plugin ABI: how the harness talks to Slurm, to Kubernetes or to this machine.
//
// A launcher is a shared library `ridgeline-launcher-NAME.so` that exports ridgeline_launcher(). JSON bytes cross the
// boundary and nothing else: no C++ types, no exceptions. Every call takes a request document and gives back a reply
// document, allocated by the launcher and handed back to its `free`. A call returns 0 when it was done; else 1, and the
// reply is {"kind": "usage|invalid_input|infrastructure", "message": "…", "hint": "…"}; with "retry": true nothing is
// wrong but the moment, and the call is made again later, for as long as anybody is willing to wait.
//
// A session is one configuration and one state folder: `open` makes it, `close` ends it, and every other call is of
// one. A job is {"key", "sweep", "job_file", "job_dir", "nodes", "cpus", "memory_bytes", "time_limit_s", "save_time_s",
// "own_trainer", "exec": [argv…], "avoid": ["node"…], "config": {…}}: running `exec` (which is `ridgeline exec
// JOB.json`) on each of its nodes is running the job; cpus and memory_bytes are of a node; a job with a save_time_s
// wants SIGUSR1 so long before it is ended, and can then be continued; a launcher that can keeps it off the nodes of
// `avoid`, where others failed; one with own_trainer runs ridgeline-train, and needs nothing of another's image.
// `config`, where there is one, is the `launch:` mapping as it holds for this job, in place of the session's: what a
// launcher needs of the session alone (which cluster, how many jobs at once) stays as it was opened, and a job that
// says otherwise is refused. `key` is deterministic and unique: submitting a key that exists already must find the job
// that exists, never start a second one. What is in a job's folder, job_dir, job_dir.h says.
//
//   open       {"config": {…}, "state_dir": "…"} -> {"capabilities": ["queue" | "poll_pause" | "render"…]}
//              config: the sweep's `launch:` mapping, with the most "nodes" and "cpus" that a job will have; state_dir:
//              a folder that the launcher may use, which is there in every call but this one and render. Checks the
//              configuration and asks nobody. What a launcher can besides what all can: `queue`, it has one of its own,
//              takes many jobs at once and runs them in its own time; `poll_pause`, it says when it wants to be asked
//              again; `render`. Other names are passed over.
//   probe      {}                        -> {"available": bool, "why": "…", "description": "…", "max_jobs": int,
//                                           "retry": bool}
//              max_jobs, where it has a `queue`: jobs it takes at once. With "retry": true nothing is wrong but the
//              moment, as where a call says so.
//   render     {"jobs": [job…]}          -> {"files": [{"name", "content"}…], "submit": "…", "fetch": "…",
//                                           "asks": ["…"…]}
//              where it can `render`: what a person could submit by hand, and the command that does, in which FILE
//              stands for a file and DIR for their folder; and, where jobs do not write into their folders themselves,
//              the command that brings their results into DIR; and what jobs ask for that they were not told, such as
//              memory that the launcher adds, each thing once, in words. Pure: nothing outside is asked.
//   submit     {"jobs": [job…]}          -> {"jobs": [{"key", "native_id"} or {"key", "error"}…]}
//              error: {kind, message, hint, retry}, as a whole call's, and of the infrastructure's reasons (run.h) the
//              "reason" that it has, where that is not `start`.
//   poll_many  {"jobs": [{"key", "native_id"}…], "look": bool}
//                                        -> {"jobs": [{"key", "state", "native_id", "started_unix_s",
//                                                      "evidence": {name: text}}…], "again_ms": int}
//              one question for all jobs, not to be asked again for again_ms where it has a `poll_pause`. With `look`,
//              of who is no driver, a launcher that has a `queue` gives up, fetches and tidies away nothing. state:
//              queued | running | ended | missing. For `ended`, evidence may carry "end" with one of the contract's
//              ends that a scheduler can know (run.h: oom_host, timeout, cancelled, infrastructure), with "reason"
//              where it is infrastructure's, "node" for the names of the nodes it was on, separated by spaces, or of
//              the one that failed, "ended_unix_s" for when the job ended, in decimal, and "message" and "hint" for
//              people. Whether a trainer is at fault `exec` alone knows, and of several nodes not even it.
//              "log_problem", of a running job too, is why its log could not be read, or not whole. For `queued`,
//              "pending" is the scheduler's own word for why it waits, "expected_unix_s" when the scheduler thinks it
//              will start, in decimal; "waits" and "hint" say why a job waits that somebody should do something about,
//              and "waits_for" is the same for all jobs that wait for the same thing, however their "waits" differ;
//              "no_node", that no node is there that it may go to, busy or not, in the scheduler's words. `missing`:
//              the scheduler has never heard of this key, or has forgotten it.
//   cancel     {"jobs": [{"key", "native_id"}…]} -> {"jobs": [{"key", "cancelled": bool}…]}
//
// Thread safety: the harness calls a launcher from one thread at a time.
#ifndef RIDGELINE_LAUNCHER_H_
#define RIDGELINE_LAUNCHER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIDGELINE_LAUNCHER_ABI_VERSION 2u

typedef struct ridgeline_launcher_session ridgeline_launcher_session;  // the launcher's own

// *session is set where it returns 0.
typedef int (*ridgeline_launcher_open)(const char* request, size_t request_size, ridgeline_launcher_session** session,
                                       char** reply, size_t* reply_size);
typedef int (*ridgeline_launcher_call)(ridgeline_launcher_session* session, const char* request, size_t request_size,
                                       char** reply, size_t* reply_size);

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
} ridgeline_launcher_table;

// The one exported function. `harness_abi_version` is what the harness speaks; a plugin that can't speak it returns a
// table with its own abi_version, which the harness then refuses with a sentence.
typedef const ridgeline_launcher_table* (*ridgeline_launcher_entry)(uint32_t harness_abi_version);

#ifdef __cplusplus
}
#endif

#endif  // RIDGELINE_LAUNCHER_H_
