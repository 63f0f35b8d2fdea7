#!/usr/bin/env bash
# add-c-library.sh PREFIX: makes an installation a bundle, which also runs on machines with an older C library than this
# one's. It copies the C library to PREFIX/lib/ridgeline/glibc, renames each program to NAME.bin, and puts a start script
# (start-bundled.sh) in its place.
set -euo pipefail
export LC_ALL=C

if [ $# -ne 1 ] || [ ! -x "$1/bin/ridgeline" ] || [ -e "$1/bin/ridgeline.bin" ]; then
  echo "usage: add-c-library.sh PREFIX (the folder to which cmake --install has installed Ridgeline)" >&2
  exit 2
fi
scripts=$(dirname "$(realpath "$0")")
prefix=$1

# The C library and its parts, which programs and the machine's libraries load by name.
glibc=$prefix/lib/ridgeline/glibc
mkdir -p "$glibc"
libc=$(ldd "$prefix/bin/ridgeline" | awk '$1 == "libc.so.6" { print $3 }')
loader=$(ldd "$prefix/bin/ridgeline" | awk '$1 ~ "^/.*/ld-" { print $1 }')
cp --dereference "$loader" "$glibc/"
for part in libc.so.6 libm.so.6 libmvec.so.1 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libanl.so.1 \
  libresolv.so.2 libnss_compat.so.2 libnss_dns.so.2 libnss_files.so.2; do
  [ ! -e "${libc%/*}/$part" ] || cp --dereference "${libc%/*}/$part" "$glibc/"
done
packages=$prefix/share/ridgeline/libraries.txt
dpkg-query -W -f='${Package} ${Version}\n' libc6 | sort -u - "$packages" >"$packages.part"
mv "$packages.part" "$packages"

minor=$(getconf GNU_LIBC_VERSION)
minor=${minor#glibc 2.}
for program in "$prefix"/bin/*; do
  mv "$program" "$program.bin"
  sed -e "s/@GLIBC_MINOR@/$minor/g" -e "s/@LOADER@/${loader##*/}/g" "$scripts/start-bundled.sh" >"$program"
  chmod 755 "$program"
done
