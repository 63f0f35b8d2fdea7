#!/bin/sh
# Starts the bundle's program of this name, whatever C library the machine has. The programs were built with glibc
# 2.@GLIBC_MINOR@. If the machine has that or a newer one, the program runs as it is, so that it can load the machine's
# own libraries. Otherwise the bundle's loader and C library run it. They can load older libraries, for example the driver's.
self=$(readlink -f "$0") || exit 127
root=${self%/bin/*}
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) # "glibc 2.36"
minor=${libc#glibc 2.}
case $minor in '' | *[!0-9]*) minor=0 ;; esac
needed=@GLIBC_MINOR@
if [ "$minor" -ge "$needed" ]; then
  exec "$self.bin" "$@"
fi
glibc=$root/lib/ridgeline/glibc
libraries=$glibc:$root/lib/ridgeline/libraries
# --library-path replaces LD_LIBRARY_PATH, so it must name those folders, too.
exec "$glibc/@LOADER@" --library-path "$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$self.bin" "$@"
