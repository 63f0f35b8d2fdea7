#!/bin/sh
# Compiles one source of kernels. Writes to REPORT the output of ptxas for each kernel, and from PTX the most threads of a
# block for which it was compiled. Spilled registers and stacks, which are in memory, are errors.
#   nvcc.sh REPORT NVCC ARGUMENTS…
report=$1
shift
kept=$report.kept
mkdir -p "$kept" || exit
if ! "$@" -Xptxas -v,-warn-spills,-warn-lmem-usage,-Werror --keep --keep-dir "$kept" 2>"$report"; then
  cat "$report" >&2
  exit 1
fi
sed -n 's/.*\(\.entry [A-Za-z0-9_]*\).*/\1/p; /^\.maxntid/p' "$kept"/*.ptx >>"$report"
rm -r "$kept"
