#!/usr/bin/env bash
# copy-libraries.sh PREFIX: completes an installation, so that it needs only the C library of its system.
# `cmake --install` runs it. It copies the libraries that the programs are linked with to PREFIX/lib/ridgeline/libraries,
# where programs and launchers look (rl_brings_libraries in cmake/options.cmake). The libraries look there for their own
# libraries, too. PREFIX/share/ridgeline/libraries.txt lists their Debian packages for scanners, as there is no dpkg
# database beside them. PREFIX/share/ridgeline/licenses has the packages' licences, which NOTICE names.
set -euo pipefail
export LC_ALL=C

if [ $# -ne 1 ] || [ ! -x "$1/bin/ridgeline" ]; then
  echo "usage: copy-libraries.sh PREFIX (the folder to which cmake --install has installed Ridgeline)" >&2
  exit 2
fi
prefix=$(realpath "$1")
libraries=$prefix/lib/ridgeline/libraries
packages=$prefix/share/ridgeline/libraries.txt
licenses=$prefix/share/ridgeline/licenses
compiled_in=(libcli11-dev nlohmann-json3-dev libprotozero-dev libsqlitecpp-dev libc6)
if ! command -v patchelf >/dev/null; then
  echo "error: patchelf is missing; install it (Debian: patchelf)" >&2
  exit 1
fi

# linked FILE…: prints "SONAME PATH" of every library that the files are linked with, directly or through another library.
# ldd fails for a file that is linked statically.
linked() {
  { ldd "$@" 2>/dev/null || true; } | awk '/not found/ { print "error: " $1 " is not found" >"/dev/stderr"; failed = 1 }
                  $2 == "=>" && $3 ~ "^/" { print $1, $3 }
                  END { exit failed }' | sort -u
}

# of_the_c_library SONAME: succeeds if the C library brings it. It stays the system's, as it belongs to the system's
# loader, name services and locales.
of_the_c_library() {
  case $1 in
    libc.so.* | libm.so.* | libmvec.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | libutil.so.* | \
      libanl.so.*) return 0 ;;
  esac
  return 1
}

rm -rf "$libraries" "$licenses"
mkdir -p "$libraries" "$licenses"
# Slurm's agent is for the machine that it was built on: libslurm finds a cluster's plugins and configuration there.
mapfile -t programs < <(find "$prefix/bin" "$prefix/lib/ridgeline/plugins" -type f ! -name ridgeline-slurm-agent)
found=$(linked "${programs[@]}")
names=() # dpkg may know a file without /usr, or with it, wherever ldd found it
while read -r soname path; do
  if of_the_c_library "$soname"; then continue; fi
  cp --dereference "$path" "$libraries/$soname"
  names+=("$path" "${path#/usr}" "/usr$path")
done <<<"$found"
chmod u+w "$libraries"/*
patchelf --set-rpath "\$ORIGIN" "$libraries"/*
mapfile -t owners < <(dpkg-query -S "${names[@]}" 2>/dev/null | cut -d : -f 1 | sort -u)
dpkg-query -W -f='${Package} ${Version}\n' "${owners[@]}" | sort -u >"$packages"
for package in "${owners[@]}" "${compiled_in[@]}"; do
  [ ! -e "/usr/share/doc/$package/copyright" ] ||
    cp --dereference "/usr/share/doc/$package/copyright" "$licenses/$package"
done
# Debian's files refer to the longer licences by path.
{ grep -ohE '/usr/share/common-licenses/[A-Za-z]+(-[0-9.]*[0-9])?' "$licenses"/* || true; } | sort -u |
  while read -r text; do
    [ ! -e "$text" ] || cp --dereference "$text" "$licenses/"
  done

# Programs and libraries must now find all libraries here. One that they find on this machine would be missing elsewhere.
unset LD_LIBRARY_PATH
astray=$(linked "${programs[@]}" "$libraries"/* | while read -r soname path; do
  case $path in "$libraries"/* | *"/../lib/ridgeline/libraries/"* | *"/../libraries/"*) continue ;; esac
  of_the_c_library "$soname" || echo "$soname at $path"
done)
if [ -n "$astray" ]; then
  echo "error: the installed programs do not look in $libraries for ${astray//$'\n'/, }" >&2
  exit 1
fi
