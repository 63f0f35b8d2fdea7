#!/usr/bin/env bash
# Prints the Debian mirror that this machine's own packages come from. If its apt sources name none, says so and fails.
set -euo pipefail

mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  sed -nE 's/^(URIs: *|deb +(\[[^]]*\] +)?)(https?:[^ ]*\/debian)\/?( .*)?$/\3/p' | head -n 1) || true
if [ -z "$mirror" ]; then
  echo "this machine's apt sources name no Debian mirror" >&2
  exit 1
fi
echo "$mirror"
