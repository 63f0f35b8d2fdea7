#!/usr/bin/env bash
# Builds the container images of Containerfile and Containerfile.cuda in plugins/kubernetes/deploy, and runs them like a pod:
# as uid 65532, without capabilities, with a root file system that cannot be written.
#
#   container_image.sh BUILD_DIR [--compile]
#
# It asks no registry: the base is a fresh Debian. Compiling everything takes a quarter of an hour. So it installs the
# programs of BUILD_DIR instead, and checks the stage that compiles without running it. --compile: runs that stage, too.
# Ends with 77, CTest's "skipped", if this machine cannot build images. It makes the checks that need no image first.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
deploy=$root/plugins/kubernetes/deploy
[ $# -ge 1 ] || { echo "usage: container_image.sh BUILD_DIR [--compile]"; exit 2; }
build=$(realpath "$1")
compile=${2-}

skip() {
  echo "skipped: $1"
  exit 77
}
fail() {
  echo "FAILED: $1"
  exit 1
}
say() { printf '%4d s  %s\n' "$SECONDS" "$1"; }

# --- Checks that need only the programs.

work=$(mktemp -d "${TMPDIR:-/tmp}/ridgeline-image.XXXXXX")
chmod 755 "$work" # uid 65532 must be able to enter it
# Overlays copy nothing. Where this machine's file system takes none, every step copies the whole image.
mkdir "$work"/{lower,upper,steps,merged}
driver=vfs
unshare --mount mount -t overlay -o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/steps" overlay \
  "$work/merged" 2>/dev/null && driver=overlay
buildah=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver "$driver")
clean_up() {
  if [ -d "$work/storage" ]; then
    "${buildah[@]}" umount --all >/dev/null 2>&1 || true
  fi
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT

# The sweep that the nightly's ConfigMap holds.
sed -n '/^  sweep.yaml: |$/,/^---$/s/^    //p' "$deploy/nightly.yaml" >"$work/nightly-sweep.yaml"
[ -s "$work/nightly-sweep.yaml" ] || fail "nightly.yaml has no sweep.yaml"
"$build/bin/ridgeline" plan --expand-only "$work/nightly-sweep.yaml" >"$work/log" 2>&1 || fail "the nightly's sweep is wrong"

cmake --install "$build" --prefix "$work/programs/opt/ridgeline" --strip >/dev/null
rm -f "$work/programs/opt/ridgeline/lib/ridgeline/plugins/ridgeline-slurm-agent"
say "installed, with $(find "$work/programs/opt/ridgeline/lib/ridgeline/libraries" -type f | wc -l) libraries"

# --- Preparations for images. On a machine without the rights (most containers), the script ends here.

for tool in buildah crun debootstrap unshare; do
  command -v "$tool" >/dev/null || skip "$tool is missing; make test-cluster installs it"
done
[ "$(id -u)" -eq 0 ] || skip "building images needs root"
unshare --mount --pid --fork true 2>/dev/null || skip "this machine does not let root mount (unshare --mount)"
mirror=$("$(dirname "$0")/../../scripts/debian-mirror.sh" 2>&1) || skip "$mirror"

# image_of NAME: commits the newest container, $container, and removes it.
image_of() {
  "${buildah[@]}" umount "$container" >/dev/null
  "${buildah[@]}" commit --quiet --rm "$container" "localhost/$1" >/dev/null
}

new_container() {
  container=$("${buildah[@]}" from scratch) || return 1
  mounted=$("${buildah[@]}" mount "$container")
}

new_container >"$work/log" 2>&1 || { tail -n 3 "$work/log"; skip "buildah cannot make a container here"; }
debootstrap --variant=minbase bookworm "$mounted" "$mirror" >"$work/log" 2>&1 ||
  { tail -n 3 "$work/log"; skip "debootstrap could not install Debian from $mirror"; }
rm -f "$mounted"/var/cache/apt/archives/*.deb
# Like common base images, this one has a PATH and, like CUDA's, an entry point.
"${buildah[@]}" config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  --entrypoint '["/nonexistent-entry-point"]' --cmd '' "$container"
image_of base
say "a base image"

new_container
cp -a "$work/programs/opt" "$mounted/"
image_of programs

# The stage that compiles is the first, and ends with an empty line.
containerfile=$deploy/Containerfile
layers=(--layers) # the second target does not compile again
if [ "$compile" != --compile ]; then
  containerfile=$work/Containerfile
  layers=()
  sed '/^FROM .* AS build$/,/^$/c FROM localhost/programs AS build' "$deploy/Containerfile" >"$containerfile"
  grep -q '^RUN scripts/install-packages.sh build ' "$deploy/Containerfile" || fail "the Containerfile compiles nothing"
  ! grep -q 'RUN .*install-packages' "$containerfile" || fail "the stage that compiles is not found in the Containerfile"
fi

# build TARGET [OPTION…]
build() {
  "${buildah[@]}" build --isolation chroot --pull-never --format oci --file "$containerfile" --target "$1" \
    --build-arg BASE=localhost/base --build-arg BUILD_BASE=localhost/base --tag "localhost/$1" "${@:2}" "$root" \
    >"$work/log" 2>&1 || { tail -n 20 "$work/log"; fail "buildah build --target $1"; }
}

# The files that go to the builder.
printf 'FROM scratch\nCOPY . /\n' >"$work/Containerfile.context"
"${buildah[@]}" build --quiet --file "$work/Containerfile.context" --tag localhost/context "$root" >/dev/null
container=$("${buildah[@]}" from localhost/context)
mounted=$("${buildah[@]}" mount "$container")
(cd "$mounted" && find . -type f -printf '%P\n') | sort >"$work/sent"
"${buildah[@]}" rm "$container" >/dev/null
# They must be sources: no build folder, database or .git. Only git can tell which files are sources.
if git -C "$root" ls-files --cached --others --exclude-standard 2>/dev/null | sort >"$work/sources" && [ -s "$work/sources" ]; then
  strange=$(comm -23 "$work/sent" "$work/sources" | head -n 5 | xargs)
  [ -z "$strange" ] || fail ".containerignore lets through: $strange"
fi
! grep -qE '^(tests|bench)/' "$work/sent" || fail ".containerignore lets the tests through"

commit=0123456789abcdef0123456789abcdef01234567
build worker "${layers[@]}" --build-arg COMMIT=$commit
say "built worker"
build driver "${layers[@]}" --build-arg COMMIT=$commit
say "built driver"
# The image for GPUs is made from a bundle. Without the CUDA toolkit, a program that does not use GPUs takes the name of its
# trainer.
cp -al "$work/programs/opt/ridgeline" "$work/ridgeline-0-test"
[ -e "$work/ridgeline-0-test/bin/ridgeline-train-cuda" ] ||
  cp "$work/ridgeline-0-test/bin/ridgeline" "$work/ridgeline-0-test/bin/ridgeline-train-cuda"
"$root/scripts/add-c-library.sh" "$work/ridgeline-0-test"
mkdir "$work/gpu"
tar -C "$work" -cf - ridgeline-0-test | xz -0 >"$work/gpu/ridgeline-0-test.tar.xz"
"${buildah[@]}" build --isolation chroot --pull-never --format oci --file "$deploy/Containerfile.cuda" \
  --build-arg BASE=localhost/base --build-arg COMMIT=$commit --tag localhost/cuda "$work/gpu" >"$work/log" 2>&1 ||
  { tail -n 20 "$work/log"; fail "buildah build of Containerfile.cuda"; }
say "built cuda"

# --- The images' own settings.

config() { "${buildah[@]}" inspect --type image --format "$2" "localhost/$1"; }
expect() { [ "$2" = "$3" ] || fail "$1 is $2, not $3"; }
for image in worker driver cuda; do
  expect "$image: user" "$(config "$image" '{{.OCIv1.Config.User}}')" 65532:65532
  expect "$image: entry point" "$(config "$image" '{{len .OCIv1.Config.Entrypoint}}')" 0
  expect "$image: command" "$(config "$image" '{{.OCIv1.Config.Cmd}}')" '[ridgeline --help]'
  expect "$image: revision" "$(config "$image" '{{index .OCIv1.Config.Labels "org.opencontainers.image.revision"}}')" \
    $commit
  expect "$image: licence" "$(config "$image" '{{index .OCIv1.Config.Labels "org.opencontainers.image.licenses"}}')" MIT
done

# --- Run.

# container IMAGE COMMAND…: runs the command as a kubelet does. /tmp is an empty folder. /ridgeline is kept for the next
# command. /test has the commands' inputs.
mkdir -p "$work/test" "$work/writable"
chown 65532:65532 "$work/writable"
container() {
  local image=$1 bundle=$work/bundle-$1 environment arguments
  shift
  if [ ! -d "$bundle" ]; then
    mkdir "$bundle"
    "${buildah[@]}" from --pull-never --name "running-$image" "localhost/$image" >/dev/null
    "${buildah[@]}" mount "running-$image" >"$bundle/rootfs"
  fi
  environment=$(config "$image" '{{range .OCIv1.Config.Env}}{{printf "%q," .}}{{end}}')
  arguments=$(printf '"%s",' "$@")
  cat >"$bundle/config.json" <<CONFIG
{
  "ociVersion": "1.0.2",
  "process": {
    "user": {"uid": 65532, "gid": 65532}, "cwd": "/", "noNewPrivileges": true, "capabilities": {},
    "env": [$environment "HOME=/tmp"], "args": [${arguments%,}]
  },
  "root": {"path": "$(cat "$bundle/rootfs")", "readonly": true},
  "mounts": [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "nodev", "mode=1777"]},
    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
    {"destination": "/test", "type": "bind", "source": "$work/test", "options": ["rbind", "ro"]},
    {"destination": "/ridgeline", "type": "bind", "source": "$work/writable", "options": ["rbind", "rw"]}
  ],
  "linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "ipc"}, {"type": "uts"}]}
}
CONFIG
  # crun refuses a machine with both versions of control groups, even if it uses none. So it sees only one.
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare --mount --propagation private sh -c 'mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; exec "$@"' sh \
    crun --root "$work/crun" --cgroup-manager=disabled run --bundle "$bundle" "ridgeline-image-$$" </dev/null
}

container worker true 2>"$work/log" || { cat "$work/log"; skip "crun runs no container here; the images were built"; }

cat >"$work/test/as-a-pod.sh" <<'SCRIPT'
set -eu
[ "$(id -u):$(id -g)" = 65532:65532 ] || { echo "runs as $(id)"; exit 1; }
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || { echo "has capabilities"; exit 1; }
case $(awk '$2 == "/" { print $4 }' /proc/self/mounts) in ro | ro,*) ;; *) echo "/ can be written"; exit 1 ;; esac
[ "$(command -v ridgeline)" = /opt/ridgeline/bin/ridgeline ]
ridgeline-train --help >/dev/null
ridgeline doctor
# All but the C library comes with the programs.
ldd /opt/ridgeline/bin/ridgeline /opt/ridgeline/bin/ridgeline-train | awk '
  /=>/ && $3 !~ "^/opt/ridgeline/" && $1 !~ "^lib(c|m|dl|rt|pthread|resolv)[.]so" { print "from the base: " $0; failed = 1 }
  END { exit failed }'
SCRIPT
cat >"$work/test/job.sh" <<'SCRIPT'
set -eu
cd /ridgeline
ridgeline render /test/sweep.yaml --to /ridgeline/rendered
for job in /ridgeline/rendered/jobs/*/job.json; do ridgeline exec "$job"; done
[ "$(cat /ridgeline/rendered/jobs/*/results.log | grep -cE '"status": ?"ok"')" -eq 2 ]
SCRIPT
cat >"$work/test/driver.sh" <<'SCRIPT'
set -eu
kubectl version --client
# The nightly's own arguments, in an empty volume. A first night has none to be held to.
ridgeline nightly run /test/sweep.yaml --launcher local --dir /ridgeline/nightly || [ $? -eq 4 ]
[ -s /ridgeline/nightly/ridgeline.db ]
[ -s /ridgeline/nightly/pages/index.html ]
ridgeline nightly status --dir /ridgeline/nightly
# What `kubectl apply -k` would apply.
kubectl kustomize /test/deploy >/tmp/applied.yaml
[ "$(grep -c '^kind: ' /tmp/applied.yaml)" -eq 6 ]
grep -q 'image: registry.example.com/ridgeline-driver@sha256:' /tmp/applied.yaml
! grep -q 'namespace: ridgeline' /tmp/applied.yaml
SCRIPT
cat >"$work/test/sweep.yaml" <<'SWEEP'
name: image
defaults: {family: llama, layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 64, seq_length: 16}
matrix:
  precision: [fp32, bf16]
measure: {warmup_steps: 1, steps: 2, repeats: 1}
launch: {launcher: local}
report: [activation-checkpointing]
SWEEP
mkdir "$work/test/deploy"
cp "$deploy"/*.yaml "$work/test/deploy/"
# The namespace differs from that of the files, so kustomize must change it everywhere.
sed -i 's/^namespace: ridgeline$/namespace: lab/' "$work/test/deploy/kustomization.yaml"

container worker ridgeline --version
container worker ridgeline --help >"$work/log" || fail "the image's own command"
container worker sh /test/as-a-pod.sh || fail "worker is not as a pod needs it"
say "worker runs as a pod"
container worker sh /test/job.sh || fail "worker runs no job"
say "worker ran a job"
container cuda ridgeline doctor >"$work/log" || true # it fails because there are no GPUs
grep -q '^ok    trainer ' "$work/log" || { cat "$work/log"; fail "cuda is not as a pod needs it"; }
container cuda ridgeline-train-cuda --help >"$work/log" || fail "the CUDA trainer does not start"
say "cuda runs as a pod"
container driver sh /test/driver.sh || fail "driver"
say "driver ran a sweep"

"${buildah[@]}" images --format '{{.Name}} {{.Size}}'
