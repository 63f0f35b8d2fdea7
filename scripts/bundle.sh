#!/usr/bin/env bash
# bundle.sh BUILD-FOLDER: makes ridgeline-VERSION-ARCHITECTURE.tar.xz in this folder of what was built. It holds the
# programs, launchers, data, every library and the C library. Unpack it anywhere, also on a file system that nodes share;
# nothing has to be installed. bin/ has start scripts (start-bundled.sh); the programs lie beside them as NAME.bin.
# One commit gives the same bytes wherever it is packed, as long as the build folder's programs are the same.
set -euo pipefail

if [ $# -ne 1 ] || [ ! -x "$1/bin/ridgeline" ]; then
  echo "usage: bundle.sh BUILD-FOLDER, where ridgeline is built" >&2
  exit 2
fi
scripts=$(dirname "$(realpath "$0")")
build=$(realpath "$1")
version=$("$build/bin/ridgeline" version | sed -nE "1s/^ridgeline ([^ ]+).*/\1/p")
commit_time=$(git -C "$scripts" log -1 --format=%ct 2>/dev/null || echo 0)
name=ridgeline-$version-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/$name

cmake --install "$build" --prefix "$top" --strip >/dev/null
# libslurm fits one release of Slurm. Without the agent the launcher uses the cluster's own sbatch, squeue and sacct.
rm -f "$top/lib/ridgeline/plugins/ridgeline-slurm-agent"

# The C library and its parts, which programs and the machine's libraries ask for by name.
glibc=$top/lib/ridgeline/glibc
mkdir -p "$glibc"
libc=$(ldd "$build/bin/ridgeline" | awk '$1 == "libc.so.6" { print $3 }')
loader=$(ldd "$build/bin/ridgeline" | awk '$1 ~ "^/.*/ld-" { print $1 }')
cp --dereference "$loader" "$glibc/"
for part in libc.so.6 libm.so.6 libmvec.so.1 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libanl.so.1 \
  libresolv.so.2 libnss_compat.so.2 libnss_dns.so.2 libnss_files.so.2; do
  [ ! -e "${libc%/*}/$part" ] || cp --dereference "${libc%/*}/$part" "$glibc/"
done
dpkg-query -W -f='${Package} ${Version}\n' libc6 >>"$top/share/ridgeline/libraries.txt"

minor=$(getconf GNU_LIBC_VERSION)
minor=${minor#glibc 2.}
for program in "$top"/bin/*; do
  mv "$program" "$program.bin"
  sed -e "s/@GLIBC_MINOR@/$minor/g" -e "s/@LOADER@/${loader##*/}/g" "$scripts/start-bundled.sh" >"$program"
  chmod 755 "$program"
done

tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$commit_time" \
  --mode=u+rwX,go+rX,go-w -cf - "$name" | xz -6 >"$name.tar.xz.part"
mv "$name.tar.xz.part" "$name.tar.xz"
echo "$name.tar.xz: $(($(stat -c %s "$name.tar.xz") / 1024 / 1024)) MiB"
