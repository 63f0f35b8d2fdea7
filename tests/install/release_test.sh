#!/usr/bin/env bash
# release_test.sh: runs scripts/release.sh in a small repository with a stand-in for podman, and looks at what it makes and
# asks for. The images themselves are built by tests/cluster/container_image.sh.
set -euo pipefail

sources=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $1" >&2
  exit 1
}

# The repository: what release.sh reads, in a commit.
mkdir -p "$work/repository/scripts" "$work/repository/plugins/kubernetes"
cp "$sources/scripts/release.sh" "$work/repository/scripts/"
cp -r "$sources/plugins/kubernetes/deploy" "$work/repository/plugins/kubernetes/"
cd "$work/repository"
git init --quiet
git add --all
git -c user.name=test -c user.email=test@example.org commit --quiet --message=all
commit=$(git rev-parse HEAD)

# A builder that writes down what it is asked for, and asks that the file and the context are there.
cat >"$work/builder" <<'EOF'
#!/usr/bin/env bash
echo "$*" >>"$CALLS"
context=${*: -1}
[ -d "$context" ] || { echo "no context $context" >&2; exit 1; }
while [ $# -gt 0 ]; do
  if [ "$1" = --file ] && [ ! -f "$2" ]; then echo "no file $2" >&2; exit 1; fi
  shift
done
EOF
chmod +x "$work/builder"
export CALLS=$work/calls BUILDER=$work/builder

# bundle PROGRAM…: a bundle with these programs.
bundle() {
  rm -rf "$work/ridgeline-1.2.3-x86_64"
  mkdir -p "$work/ridgeline-1.2.3-x86_64/bin"
  (cd "$work/ridgeline-1.2.3-x86_64/bin" && touch "$@")
  tar -C "$work" -cJf "$work/ridgeline-1.2.3-x86_64.tar.xz" ridgeline-1.2.3-x86_64
  echo "$work/ridgeline-1.2.3-x86_64.tar.xz"
}

said=$(scripts/release.sh "$(bundle ridgeline ridgeline-train ridgeline-train-cuda)")
(cd release && sha256sum --check --quiet SHA256SUMS) || fail "the checksum"
for image in worker driver cuda; do
  grep -q -- "--tag ridgeline-$image:1.2.3 --build-arg COMMIT=$commit " "$CALLS" || fail "no image $image: $(cat "$CALLS")"
done
grep -q -- '--target driver' "$CALLS" || fail "the driver is a target of its own"
grep -q -- '--file plugins/kubernetes/deploy/Containerfile.cuda release$' "$CALLS" || fail "the bundle is in the context"
echo "$said" | grep -qx 'release/ridgeline-1.2.3-x86_64.tar.xz' || fail "it says what it made: $said"

rm "$CALLS"
said=$(scripts/release.sh "$(bundle ridgeline ridgeline-train)")
grep -q ridgeline-cuda "$CALLS" && fail "an image for GPUs without their trainer"
echo "$said" | grep -q 'no image ridgeline-cuda: the bundle has no CUDA trainer' || fail "it says so: $said"

echo '# changed' >>scripts/release.sh
if scripts/release.sh "$(bundle ridgeline)" 2>"$work/refused"; then fail "a release of no commit"; fi
grep -q 'these sources are not those of a commit' "$work/refused" || fail "why: $(cat "$work/refused")"
git checkout --quiet .
if scripts/release.sh nothing.tar.xz 2>"$work/refused"; then fail "a release of no bundle"; fi
echo "release.sh makes what it says"
