#!/usr/bin/env bash
# copy-libraries.sh PREFIX: makes an installed Ridgeline need nothing of its system but the C library. Copies the libraries its
# programs are linked with to PREFIX/lib/ridgeline/libraries, where the programs look first (cmake/install.cmake). Which
# Debian packages they are from stands in PREFIX/share/ridgeline/libraries.txt: an image's scanner finds no dpkg that knows.
set -euo pipefail

if [ $# -ne 1 ] || [ ! -x "$1/bin/ridgeline" ]; then
  echo "usage: copy-libraries.sh PREFIX, where cmake --install has put Ridgeline" >&2
  exit 2
fi
prefix=$(realpath "$1")
libraries=$prefix/lib/ridgeline/libraries
packages=$prefix/share/ridgeline/libraries.txt

# Slurm's own library looks for a cluster's plugins and configuration, which are not in a pod.
rm -f "$prefix/lib/ridgeline/plugins/ridgeline-slurm-agent"

# linked FILE…: "SONAME PATH" of every library they are linked with, whoever of them asks for it.
linked() {
  ldd "$@" | awk '/not found/ { print "error: " $1 " is not found" >"/dev/stderr"; failed = 1 }
                  $2 == "=>" && $3 ~ "^/" { print $1, $3 }
                  END { exit failed }' | sort -u
}

# package FILE: the Debian package it is from. dpkg may know it without /usr, or with it, wherever ldd found it.
package() {
  local name
  for name in "$1" "${1#/usr}" "/usr$1"; do
    dpkg-query -S "$name" 2>/dev/null | cut -d : -f 1 && return
  done
  echo "error: no package has $1" >&2
  return 1
}

rm -rf "$libraries"
mkdir -p "$libraries"
mapfile -t programs < <(find "$prefix/bin" "$prefix/lib/ridgeline/plugins" -type f)
found=$(linked "${programs[@]}")
while read -r soname path; do
  owner=$(package "$path")
  # The C library belongs to its system: its loader, name services and locales are there.
  [ "$owner" != libc6 ] || continue
  cp --dereference "$path" "$libraries/$soname"
  dpkg-query -W -f='${Package} ${Version}\n' "$owner"
done <<<"$found" | sort -u >"$packages"

# What the programs now find of their own must be here: else they would find it on this machine, and nowhere else.
astray=$(linked "$prefix"/bin/* | grep -v "/../lib/ridgeline/libraries/" | while read -r soname path; do
  [ "$(package "$path")" = libc6 ] || echo "$soname at $path"
done)
if [ -n "$astray" ]; then
  echo "error: the programs do not look in $libraries for ${astray//$'\n'/, }" >&2
  exit 1
fi
