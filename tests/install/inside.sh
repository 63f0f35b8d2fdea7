#!/bin/bash
# What other-systems.sh runs on a system that has a bundle in /opt and nothing else.
set -euo pipefail
cd /root
getconf GNU_LIBC_VERSION
/opt/bin/ridgeline doctor
/opt/bin/ridgeline run /test/bundle-sweep.yaml
/opt/bin/ridgeline exec --carry-to carried
carried/ld.so --library-path carried carried/ridgeline version

export DEBIAN_FRONTEND=noninteractive
apt-get -q update >apt.log 2>&1
apt-get -q install -y --no-install-recommends slurmctld slurmd slurm-client munge procps >>apt.log 2>&1 ||
  { tail -n 20 apt.log && exit 1; }
/test/slurm-cluster start /root/slurm --nodes=1
export SLURM_CONF=/root/slurm/etc/slurm.conf
sinfo --version
/opt/bin/ridgeline run /test/bundle-sweep.yaml --launcher slurm --db slurm.db
/opt/bin/ridgeline query --db slurm.db "select status, count(*) from runs group by status"
[ "$(/opt/bin/ridgeline query --db slurm.db "select count(*) as n from runs where status = 'ok'" -o json | tr -dc 0-9)" = 2 ]
/test/slurm-cluster remove /root/slurm
