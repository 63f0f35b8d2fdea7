#!/usr/bin/env bash
# What throw-away clusters have in common, to be sourced: their processes and their ports. `self` is the cluster's script,
# `dir` its folder; what its daemons say goes to $dir/log.
# shellcheck disable=SC2154 # those two are the sourcing script's

die() {
  echo "$(basename "$self"): $*" >&2
  exit 2
}

# within SECONDS COMMAND…: until it succeeds.
within() {
  local end=$((SECONDS + $1 + 1))
  until "${@:2}" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.05
  done
}

# --- Processes. The cluster's have its folder in the environment they were started with, and their daemon's name.

launch() { # launch DAEMON COMMAND…: one that goes into the background by itself
  env RIDGELINE_TEST_CLUSTER="$dir" RIDGELINE_TEST_DAEMON="$dir $1" "${@:2}" </dev/null >>"$dir/log/$1.out" 2>&1 ||
    die "$1 does not start: $(tail -n 3 "$dir/log/$1.out")"
}

launch_in_background() { # launch_in_background DAEMON COMMAND…
  (RIDGELINE_TEST_CLUSTER=$dir RIDGELINE_TEST_DAEMON="$dir $1" exec setsid "${@:2}") </dev/null \
    >>"$dir/log/$1.out" 2>&1 9<&- &
}

# pids [DAEMON]: its processes, and those that run its jobs; without a name, the whole cluster's.
pids() {
  local mark=RIDGELINE_TEST_CLUSTER=$dir
  [ $# -eq 0 ] || mark="RIDGELINE_TEST_DAEMON=$dir $1"
  {
    grep -lzxF -- "$mark" /proc/[0-9]*/environ || true
    # Newer releases' slurmstepd has no environment, and its daemon's log.
    find /proc/[0-9]*/fd -lname "$dir/log/${1-*}.log" || true
  } 2>/dev/null | cut -d / -f 3 | sort -u
}

named() { # named PROGRAM <pids: of those, the ones that run it
  local pid
  while read -r pid; do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ]; then echo "$pid"; fi
  done
}

with_descendants() {
  local wanted
  wanted=$(tr '\n' ' ')
  ps -e -o pid=,ppid= | awk -v wanted="$wanted" '
    BEGIN { n = split(wanted, list, " ") }
    { children[$2] = children[$2] " " $1 }
    END {
      for (i = 1; i <= n; ++i) {
        if (seen[list[i]]++) continue
        print list[i]
        m = split(children[list[i]], more, " ")
        for (j = 1; j <= m; ++j) list[++n] = more[j]
      }
    }'
}

alive() { # a process that has ended and that nobody has waited for is not
  local state
  state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [ "${state:0:1}" != Z ]
}

signal() { # signal NAME <pids
  local pid
  while read -r pid; do kill -s "$1" "$pid" 2>/dev/null || true; done
}

# Kills them, and whatever they have started meanwhile.
end_processes() {
  local tries
  for ((tries = 0; tries < 200; ++tries)); do
    if [ -z "$(pids "$@")" ]; then return; fi
    pids "$@" | with_descendants | signal KILL
    sleep 0.05
  done
  die "these processes do not end: $(pids "$@" | tr '\n' ' ')"
}

daemon_ended() { [ -z "$(pids "$1" | named "$2")" ]; }

kill_daemon() { # kill_daemon DAEMON PROGRAM: it alone
  pids "$1" | named "$2" | signal KILL
  within 120 daemon_ended "$1" "$2"
}

# --- Ports: a block of 64 below those that the kernel gives away. A cluster's watch has them in its command line, where
# others see that they are taken before anything listens there.

ports_used() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "0A" { sub(/.*:/, "", $2); print $2 }'; }

ports_claimed() { ps -e -o args= | sed -nE 's/.* watch .* --ports=([0-9]+)$/\1/p'; }

claimed() { ports_claimed | grep -qx "$1"; }

free_ports() { # free_ports COUNT: the first
  local used base port tries
  used=" $(ports_used | tr '\n' ' ')"
  for ((tries = 0; tries < 100; ++tries)); do
    base=$((10000 + RANDOM % 150 * 64))
    if claimed "$base"; then continue; fi
    for ((port = base; port < base + $1; ++port)); do
      if [[ $used == *" $(printf %04X "$port") "* ]]; then continue 2; fi
    done
    echo "$base"
    return
  done
  die "no free ports"
}

# claim_ports COUNT PID: sets `ports` to the first of COUNT that are this cluster's until it is removed, which is also done
# when that process has ended.
claim_ports() {
  exec 9<"${BASH_SOURCE[0]}"
  flock 9
  ports=$(free_ports "$1")
  launch_in_background watch "$self" watch "$dir" "$2" --ports="$ports"
  within 120 claimed "$ports"
  exec 9<&-
}

remove_after() { # remove_after PID: what the watch does
  while alive "$1"; do sleep 0.5; done
  # No longer as one of the cluster's processes.
  exec env -u RIDGELINE_TEST_CLUSTER -u RIDGELINE_TEST_DAEMON "$self" remove "$dir"
}
