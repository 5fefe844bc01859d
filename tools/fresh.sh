#!/usr/bin/env bash
# Tests on a bare Debian 12: installs one in a folder, clones this repository's HEAD into it, runs
# the demo or the tests there, and removes everything.
#
#   sudo tools/fresh.sh --demo
#   sudo tools/fresh.sh --test
#   sudo tools/fresh.sh --run 'COMMAND'    # another command, in the clone
#   sudo tools/fresh.sh --cache --test     # faster, with this machine's compiler cache
#
# The new system uses this machine's package sources and pip configuration. It gets a copy of the
# contract suite that CPPRUN_CONFORMANCE_DIR names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { sed -n 's/^#   sudo /  /p' "${BASH_SOURCE[0]}"; }

limit=5400  # seconds per command
commands=()
cache=
while [ $# -gt 0 ]; do
  case $1 in
    --demo) commands+=(tools/demo.sh) ;;
    --test) commands+=(tools/test.sh) ;;
    --cache) cache=${CCACHE_DIR:-$HOME/.cache/ccache} ;;
    --run) commands+=("${2:?--run needs a command}"); shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
if [ ${#commands[@]} = 0 ]; then usage >&2; exit 2; fi
if [ "$(id -u)" != 0 ]; then echo "fresh: mounting a system needs root; use sudo" >&2; exit 1; fi

make_system() {
  command -v mmdebstrap >/dev/null || {
    apt-get -q update
    DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends mmdebstrap
  }
  local sources=()
  mapfile -t sources < <(grep -lsE '^[^#]*bookworm' /etc/apt/sources.list \
    /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/debian.sources || true)
  apt-config dump | grep '^Acquire::' >"$work/apt.conf" || true
  mmdebstrap -q --variant=apt --include=git,ca-certificates,mount --aptopt="$work/apt.conf" \
    bookworm "$system" ${sources[@]+"${sources[@]}"}
}

# Copies what network clients need: name resolution, certificates, pip's configuration.
copy_configuration() {
  local file
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf "$HOME/.config/pip/pip.conf" \
    /etc/ssl/certs/ca-certificates.crt; do
    if [ -f "$file" ]; then
      mkdir -p "$system/$(dirname "${file/#$HOME//root}")"
      cp -L "$file" "$system/${file/#$HOME//root}"
    fi
  done
}

clone() {  # not below /root: tests run programs as other users
  git clone -q "file://$PWD" "$system/srv/cpprun"
  git -C "$system/srv/cpprun" checkout -q --detach "$(git rev-parse HEAD)"
  if [ -d "${CPPRUN_CONFORMANCE_DIR:-}" ]; then
    cp -rL "$CPPRUN_CONFORMANCE_DIR" "$system/root/contract"
  fi
}

# Mounts in a separate namespace, which disappears with the command: removing the folder stays safe.
# The system is the root of that namespace, and not only of the process: the tests enter namespaces
# of their own by `nsenter --mount`, which would leave a chroot.
run_inside() {
  local name variables=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  for name in $(compgen -e); do
    case ${name,,} in *_proxy | pip_* | ssl_cert_*) variables+=("$name=${!name}") ;; esac
  done
  if [ -d "$system/root/contract" ]; then
    variables+=(CPPRUN_CONFORMANCE_DIR=/root/contract)
  fi
  mkdir -p "$system/root/.cache/ccache"
  # shellcheck disable=SC2016  # the inner shell expands these
  timeout --kill-after=10 "$limit" unshare --mount --propagation private --pid --fork --kill-child \
    bash -euo pipefail -c '
      system=$1
      cache=$2
      shift 2
      mount --bind "$system" "$system"
      mount -t proc proc "$system/proc"
      mount --rbind /dev "$system/dev"
      mount --rbind /sys "$system/sys"
      mount -t tmpfs tmpfs "$system/run"
      if [ -d "$cache" ]; then mount --bind "$cache" "$system/root/.cache/ccache"; fi
      cd "$system"
      pivot_root . mnt
      umount -l mnt
      exec chroot . env -i "$@"
    ' fresh "$system" "$cache" "${variables[@]}" bash -euo pipefail -c "cd /srv/cpprun && $1"
}

clean_up() {
  local status=$?
  rm -rf --one-file-system "$work"
  exit "$status"
}

work=$(mktemp -d "${TMPDIR:-/var/tmp}/cpprun-fresh.XXXXXX")
system=$work/system
trap clean_up EXIT
trap 'exit 130' INT TERM
SECONDS=0
make_system
copy_configuration
clone
echo "fresh: a bare Debian 12 with this repository, after $SECONDS s"
for command in "${commands[@]}"; do
  echo "fresh: $command"
  status=0
  run_inside "$command" || status=$?
  echo "fresh: $command ended with $status, at $SECONDS s"
  if [ "$status" != 0 ]; then exit "$status"; fi
done
