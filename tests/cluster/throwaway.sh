#!/usr/bin/env bash
# Processes and ports of throw-away clusters. Their scripts source this file. `self` is the cluster's script, `dir` its
# folder. The daemons' output goes to $dir/log.
# shellcheck disable=SC2154 # the sourcing script sets these two

die() {
  echo "$(basename "$self"): $*" >&2
  exit 2
}

# within SECONDS COMMAND…: repeats the command until it succeeds; returns 1 if it has not after that time.
within() {
  local end=$((SECONDS + $1 + 1))
  until "${@:2}" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# --- Processes. The cluster's processes have its folder and their daemon's name in their initial environment.

launch() { # launch DAEMON COMMAND…: starts a daemon that goes into the background by itself
  env RIDGELINE_TEST_CLUSTER="$dir" RIDGELINE_TEST_DAEMON="$dir $1" "${@:2}" </dev/null >>"$dir/log/$1.out" 2>&1 ||
    die "$1 does not start: $(tail -n 3 "$dir/log/$1.out")"
}

launch_in_background() { # launch_in_background DAEMON COMMAND…
  (RIDGELINE_TEST_CLUSTER=$dir RIDGELINE_TEST_DAEMON="$dir $1" exec setsid "${@:2}") </dev/null \
    >>"$dir/log/$1.out" 2>&1 9<&- &
}

# pids [DAEMON]: prints the daemon's processes and those that run its jobs; without a name, those of the whole cluster.
pids() {
  local mark=RIDGELINE_TEST_CLUSTER=$dir file name steps=()
  [ $# -eq 0 ] || mark="RIDGELINE_TEST_DAEMON=$dir $1"
  for file in /proc/[0-9]*/comm; do
    if { read -r name <"$file"; } 2>/dev/null && [ "$name" = slurmstepd ]; then steps+=("${file%comm}fd"); fi
  done
  {
    grep -lzxF -- "$mark" /proc/[0-9]*/environ || true
    # In newer releases, slurmstepd has an empty environment, but has its daemon's log open.
    [ ${#steps[@]} -eq 0 ] || find "${steps[@]}" -lname "$dir/log/${1-*}.log" || true
  } 2>/dev/null | cut -d / -f 3 | sort -u
}

named() { # named PROGRAM <pids: prints those of the processes that run the program
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

alive() { # alive PID: false for a zombie, too
  local stat
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null && [[ $stat != *') Z '* ]]
}

signal() { # signal NAME <pids
  local pid
  while read -r pid; do kill -s "$1" "$pid" 2>/dev/null || true; done
}

# end_processes [DAEMON]: kills these processes, and those that they have started meanwhile.
end_processes() {
  local tries found
  for ((tries = 0; tries < 200; ++tries)); do
    found=$(pids "$@")
    [ -n "$found" ] || return 0
    with_descendants <<<"$found" | signal KILL
    sleep 0.1
  done
  die "these processes do not end: $(pids "$@" | tr '\n' ' ')"
}

daemon_ended() { [ -z "$(pids "$1" | named "$2")" ]; }

kill_daemon() { # kill_daemon DAEMON PROGRAM: kills the daemon only, not the processes of its jobs
  pids "$1" | named "$2" | signal KILL
  within 120 daemon_ended "$1" "$2"
}

# --- Ports. Each cluster has a block of 64, below those that the kernel assigns. The cluster's watch has the block in its
# command line, so that others see the claim before anything listens there.

ports_used() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "0A" { sub(/.*:/, "", $2); print $2 }'; }

ports_claimed() { ps -e -o args= | sed -nE 's/.* watch .* --ports=([0-9]+)$/\1/p'; }

claimed() { ports_claimed | grep -qx "$1"; }

free_ports() { # free_ports COUNT: prints the first of COUNT free ports
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

# claim_ports COUNT PID: sets `ports` to the first of COUNT ports, which belong to this cluster until it is removed. When
# that process ends, the cluster is removed.
claim_ports() {
  exec 9<"${BASH_SOURCE[0]}"
  flock 9
  ports=$(free_ports "$1")
  launch_in_background watch "$self" watch "$dir" "$2" --ports="$ports"
  within 120 claimed "$ports"
  exec 9<&-
}

remove_after() { # remove_after PID: the watch's work
  while alive "$1"; do sleep 1; done
  # Without these variables it is not one of the cluster's processes, so it does not kill itself.
  exec env -u RIDGELINE_TEST_CLUSTER -u RIDGELINE_TEST_DAEMON "$self" remove "$dir"
}
