#!/bin/sh
# Compiles one source of kernels. Writes to REPORT the output of ptxas for each kernel, and from PTX the most threads of a
# block for which it was compiled. Spilled registers and stacks, which are in memory, are errors.
#   nvcc.sh REPORT CCACHE NVCC ARGUMENTS…   CCACHE: ccache, or empty
# ccache calls this script again, as the compiler. It keeps the object, and what the script writes to stderr: the report.
# It must compare the sources as they are (CCACHE_DEPEND), because nvcc preprocesses them for each architecture.

compile() {
  kept=
  previous=
  for argument in "$@"; do
    [ "$previous" != -o ] || kept=$argument.kept
    previous=$argument
  done
  [ -n "$kept" ] || exec "$RIDGELINE_KERNEL_COMPILER" "$@" # ccache asks for the version
  mkdir -p "$kept" || return
  "$RIDGELINE_KERNEL_COMPILER" "$@" -Xptxas -v,-warn-spills,-warn-lmem-usage,-Werror --keep --keep-dir "$kept"
  status=$?
  [ "$status" != 0 ] || sed -n 's/.*\(\.entry [A-Za-z0-9_]*\).*/\1/p; /^\.maxntid/p' "$kept"/*.ptx >&2
  rm -r "$kept"
  return "$status"
}

# A function, because a shell would read on in a changed file while nvcc runs.
main() {
  if [ -n "$RIDGELINE_KERNEL_COMPILER" ]; then
    compile "$@"
    return
  fi
  report=$1
  ccache=$2
  export RIDGELINE_KERNEL_COMPILER="$3"
  export CCACHE_COMPILERTYPE=nvcc CCACHE_DEPEND=1 CCACHE_COMPILERCHECK='%compiler% --version' CCACHE_EXTRAFILES="$0"
  shift 3
  ${ccache:+"$ccache"} "$0" "$@" 2>"$report" && return
  cat "$report" >&2
  return 1
}

main "$@"
exit
