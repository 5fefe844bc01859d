#!/usr/bin/env bash
# Installs missing packages on Debian 12: the compiler and libraries, and with
#
#   --test       the tools of the tests; includes --python and --docs
#   --python     .venv, a virtual environment with torch and pytest
#   --docs       Doxygen and build/venv-docs, an environment with MkDocs
#   --browser    a browser for the tests of the dashboard
#   --frameworks build/venv-frameworks: .venv with Lightning, transformers, Accelerate; in --test
#   --frameworks-long  build/venv-frameworks-long: that with DeepSpeed, Ignite and torchft
#   --newest     build/venv-newest, an environment with the newest torch
#   --wheel      build/venv-wheel, an environment with the linker for wheels
#   --wheel-aarch64  a cross compiler, and build/aarch64-root with libraries and Python for arm64;
#                includes --wheel
#   --container  the tools that build container images
#   --coverage   build/venv-coverage, an environment with gcovr
#   --kubernetes build/venv-kubernetes, an environment with kubectl and the schemas of manifests
#   --torchx     build/venv-torchx, an environment with TorchX
#   --submitit   build/venv-submitit, an environment with submitit
#   --torch-tests  build/torch_tests: torch's own tests, of Debian's source package; and
#                build/venv-torch-tests: .venv with what they import
#
# Fast if nothing is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/run_together.sh

libraries=(libboost1.81-dev libcli11-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libdeflate-dev
           libsodium-dev libssl-dev)
for_build=(ca-certificates g++ cmake ninja-build ccache "${libraries[@]}")
for_python=(python3 python3-venv procps)
for_test=(libgtest-dev libgmock-dev clang lld clang-format-14 clang-tidy-14 libclang-rt-14-dev
          iproute2 iptables mount openssh-client libbenchmark-dev valgrind libpng-dev zlib1g-dev
          libturbojpeg0-dev util-linux systemd man-db tmux zsh tcsh fish openssl python3-fusepy)
for_docs=(python3 python3-venv doxygen)
for_browser=(chromium chromium-driver fonts-dejavu-core)

usage() {
  echo "usage: tools/deps.sh [--test] [--python] [--docs] [--browser] [--frameworks]" \
    "[--frameworks-long] [--newest] [--wheel] [--wheel-aarch64] [--container] [--coverage]" \
    "[--kubernetes] [--torchx] [--submitit] [--torch-tests]"
}

want=("${for_build[@]}")
venv=no
docs=no
newest=no
frameworks=no
frameworks_long=no
wheel=no
aarch64=no
coverage=no
pinned=()
servers=no
torch_tests=no
for option in "$@"; do
  case $option in
    --test)
      want+=("${for_python[@]}" "${for_test[@]}" "${for_docs[@]}")
      venv=yes
      docs=yes
      frameworks=yes
      servers=yes
      ;;
    --frameworks) want+=("${for_python[@]}"); venv=yes; frameworks=yes ;;
    --frameworks-long)
      want+=("${for_python[@]}")
      venv=yes
      frameworks=yes
      frameworks_long=yes
      ;;
    --python) want+=("${for_python[@]}"); venv=yes ;;
    --docs) want+=("${for_docs[@]}"); docs=yes ;;
    --browser) want+=("${for_browser[@]}") ;;
    --newest) want+=("${for_python[@]}"); newest=yes ;;
    --wheel) want+=(python3 python3-venv mmdebstrap); wheel=yes ;;
    --wheel-aarch64)
      want+=(python3 python3-venv mmdebstrap g++-aarch64-linux-gnu qemu-user-static)
      wheel=yes
      aarch64=yes
      ;;
    --container) want+=(buildah mmdebstrap) ;;
    --coverage) want+=(python3 python3-venv); coverage=yes ;;
    --kubernetes) want+=(python3 python3-venv iproute2 util-linux); pinned+=(kubernetes) ;;
    --torchx) want+=(python3 python3-venv); pinned+=(torchx) ;;
    --submitit) want+=(python3 python3-venv); pinned+=(submitit) ;;
    --torch-tests)
      want+=("${for_python[@]}" debian-archive-keyring)
      venv=yes
      servers=yes
      torch_tests=yes
      ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "deps: not root and no sudo here; as root, run: $*" >&2
    return 1
  fi
}

missing_packages() {
  local package
  for package in "${want[@]}"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      echo "$package"
    fi
  done
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "deps: not Debian; install the equivalents of these packages: ${want[*]}" >&2
    return 0
  fi
  local missing
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "deps: installing ${missing[*]}"
  as_root apt-get -q update
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y install --no-install-recommends "${missing[@]}"
}

# unpack NAME: unpacks the package into build/NAME. It is not installed, because that would start
# its server on this machine.
unpack() {
  command -v apt-get >/dev/null || return 0
  mkdir -p "build/$1"
  (
    cd "build/$1"
    apt-get -q download "$1" || { as_root apt-get -q update; apt-get -q download "$1"; }
    dpkg -x "$1"_*.deb .
    rm "$1"_*.deb
  )
}

# pip_install PYTHON ARGUMENTS...: without bytecode, because most files are never imported. Python
# writes it at the first import.
pip_install() {
  local python=$1
  shift
  "$python" -m pip install -q --disable-pip-version-check --no-compile "$@"
}

# The stamp is a copy of the list that was installed.
make_venv() {
  local python=/usr/bin/python3 stamp=.venv/installed
  [ -x "$python" ] || python=$(command -v python3)
  if cmp -s tools/requirements.txt "$stamp" && .venv/bin/python -c '' 2>/dev/null; then
    return 0
  fi
  echo "deps: making .venv with torch (about 2.2 GB to fetch, 3.6 GB on disk)"
  .venv/bin/python -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear .venv
  pip_install .venv/bin/python --no-deps -r tools/requirements.txt
  .venv/bin/python -c 'import torch.distributed as dist; assert dist.is_gloo_available()'
  cp tools/requirements.txt "$stamp"
}

# make_layered NAME ENVIRONMENT...: build/venv-NAME with what tools/requirements-NAME.txt lists. It
# sees the packages of the other environments, torch among them, through a .pth file. DeepSpeed's
# build needs torch; its operators are compiled at their first use.
make_layered() {
  local folder=build/venv-$1 list=tools/requirements-$1.txt
  shift
  if cmp -s "$list" "$folder/installed" && "$folder/bin/python" -c 'import torch' 2>/dev/null
  then
    return 0
  fi
  /usr/bin/python3 -m venv --clear "$folder"
  "$folder/bin/python" - "$@" <<'END'
import os, pathlib, sys, sysconfig
sites = [sysconfig.get_path('purelib', 'venv', {'base': os.path.realpath(venv)})
         for venv in sys.argv[1:]]
pathlib.Path(sysconfig.get_path('purelib'), 'torch.pth').write_text('\n'.join(sites))
END
  DS_BUILD_OPS=0 pip_install "$folder/bin/python" --no-deps --no-build-isolation -r "$list"
  cp "$list" "$folder/installed"
}

make_docs() {
  local venv=build/venv-docs list=tools/requirements-docs.txt
  if cmp -s "$list" "$venv/installed" && "$venv/bin/python" -c '' 2>/dev/null; then return 0; fi
  /usr/bin/python3 -m venv --clear "$venv"
  pip_install "$venv/bin/python" --no-deps -r "$list"
  cp "$list" "$venv/installed"
}

# torch_wants PATTERN: torch's requirements that match, without parts that a CPU run never loads.
torch_wants() {
  build/venv-newest/bin/python - "$1" <<'END'
import importlib.metadata, re, sys
for want in importlib.metadata.requires('torch'):
    name = want.split(';')[0].strip()
    if re.match(sys.argv[1], name):
        print(re.sub(r',(cusolver|nvrtc|nvtx)\b', '', name))
END
}

# Installs the newest torch on PyPI, the other packages of tools/requirements.txt, and torchtitan.
make_newest() {
  local python=build/venv-newest/bin/python others wants
  [ -x "$python" ] || /usr/bin/python3 -m venv build/venv-newest
  mapfile -t others < <(grep -vE '^(#|torch=|nvidia-|$)' tools/requirements.txt)
  pip_install "$python" --upgrade --no-deps torch "${others[@]}"
  mapfile -t wants < <(torch_wants 'nvidia-')
  pip_install "$python" --no-deps "${wants[@]}"
  # With dependencies only here: cuda-toolkit pins the packages of one CUDA release. stderr is
  # hidden, because pip warns about the packages left out on purpose.
  mapfile -t wants < <(torch_wants 'cuda-toolkit')
  pip_install "$python" "${wants[@]}" 2>/dev/null
  pip_install "$python" --no-deps -r tools/requirements-newest.txt
  "$python" -c 'import torch; print("deps: the newest torch is", torch.__version__)'
}

# ziglang 0.15 is the first that copies variables of an older glibc correctly
# (packaging/wheel/relink.py).
make_wheel_tools() {
  [ -x build/venv-wheel/bin/python ] || /usr/bin/python3 -m venv build/venv-wheel
  pip_install build/venv-wheel/bin/python ziglang==0.15.2
}

# build/aarch64-root: packages for arm64, unpacked and not installed, because their scripts would
# need an arm64 machine. It is the sysroot of cmake/aarch64.cmake, and what the tests run. The stamp
# is a list of the packages.
make_aarch64_root() {
  local root=build/aarch64-root packages
  packages=$(IFS=, && echo "libc6,libssl3,python3,${libraries[*]}")
  if [ "$(cat "$root/packages" 2>/dev/null)" = "$packages" ]; then return 0; fi
  echo "deps: making $root"
  as_root rm -rf --one-file-system "$root"
  as_root mmdebstrap -q --variant=extract --architectures=arm64 --include="$packages" \
    bookworm "$root"
  echo "$packages" | as_root tee "$root/packages" >/dev/null
}

make_coverage_tools() {
  [ -x build/venv-coverage/bin/python ] || /usr/bin/python3 -m venv build/venv-coverage
  pip_install build/venv-coverage/bin/python gcovr==8.4
}

# make_pinned NAME: an environment with what tools/requirements-NAME.txt lists. The stamp is a copy
# of the list.
make_pinned() {
  local venv=build/venv-$1 list=tools/requirements-$1.txt
  if cmp -s "$list" "$venv/installed" && "$venv/bin/python" -c '' 2>/dev/null; then return 0; fi
  echo "deps: making $venv"
  /usr/bin/python3 -m venv --clear "$venv"
  pip_install "$venv/bin/python" --no-deps -r "$list"
  cp "$list" "$venv/installed"
}

install_packages
if [ "$servers" = yes ]; then
  [ -x build/prometheus/usr/bin/promtool ] || unpack prometheus
  [ -x build/etcd-server/usr/bin/etcd ] || unpack etcd-server
fi
# At once, because they wait for the network and for the disk.
environments=()
if [ "$venv" = yes ]; then environments+=(make_venv); fi
if [ "$frameworks" = yes ]; then environments+=("make_layered frameworks .venv"); fi
if [ "$docs" = yes ]; then environments+=(make_docs); fi
run_together ${environments[@]+"${environments[@]}"}
if [ "$frameworks_long" = yes ]; then
  make_layered frameworks-long .venv build/venv-frameworks
fi
if [ "$torch_tests" = yes ]; then
  make_layered torch-tests .venv
  tools/torch_tests.py build/torch_tests
fi
if [ "$newest" = yes ]; then make_newest; fi
if [ "$wheel" = yes ]; then make_wheel_tools; fi
if [ "$aarch64" = yes ]; then make_aarch64_root; fi
if [ "$coverage" = yes ]; then make_coverage_tools; fi
for name in ${pinned[@]+"${pinned[@]}"}; do make_pinned "$name"; done
