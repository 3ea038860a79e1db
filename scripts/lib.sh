# shellcheck shell=bash disable=SC2034
# Functions shared by the scripts in this folder. To be sourced, not run; it changes nothing on the machine.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Toolchain and linter are stored outside the checkout, so that a new clone needn't fetch and compile them again.
cache=${CNPGATE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/cnpgate}

# The Go release that setup fetches if no installed one can build the module (see go.mod).
go_release=1.26.8
lint_release=v2.12.2
testsum_release=v1.13.0

# abi is the number in the names of DPDK's packages: of DPDK 22.11 (Debian 12), 24.11 (Debian 13), or 23.11 (Ubuntu 24.04, not tried).
abi=23
case $(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null) in
noble) abi=24 ;;
trixie) abi=25 ;;
esac

# Packages that a finished binary needs besides the libraries that it is linked with: DPDK's generic pool driver, which it loads by name,
# and drivers for virtual and local devices and common NICs. mlx5 also needs its user-space library, rdma-core.
pool_package=librte-mempool-ring$abi
driver_packages=()
for driver in af-packet virtio vhost tap pcap ring null memif i40e ice ixgbe e1000- igc iavf mlx5- bnxt ena vmxnet3-; do
  driver_packages+=("librte-net-${driver}$abi")
done

# ethtool and others are in sbin, which isn't on a non-root PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# peers_folder prints where scripts/setup --peers unpacks Debian's packages, by the version of DPDK that they belong to.
peers_folder() { echo "$cache/peers-$(pkg-config --modversion libdpdk)"; }

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  say "$@"
  exit 1
}

# usage_is prints the script's header comment as its usage and exits, if an argument asks for it.
usage_is() {
  local arg
  for arg in "$@"; do
    case $arg in
    -h | --help)
      awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
      exit 0
      ;;
    esac
  done
}

bad_usage() {
  say "$1; see $0 --help"
  exit 2
}

is_root() { [ "$(id -u)" = 0 ]; }

# go_works reports whether the Go at $1 can build this module. Go from 1.21 on fetches a newer release itself if go.mod requires it, unless
# that is disabled.
go_works() {
  local have
  have=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  have=${have#go}
  case $have in
  1.[0-9] | 1.[0-9].* | 1.1[0-9] | 1.1[0-9].* | 1.20 | 1.20.*) return 1 ;;
  1.*)
    local want
    want=$(awk '$1 == "go" { print $2 }' "$root/go.mod")
    if [ "$(printf '%s\n' "$want" "$have" | sort -V | head -1)" != "$want" ]; then
      export GOTOOLCHAIN=auto
    fi
    ;;
  *) return 1 ;;
  esac
}

# use_go puts a Go that can build the module on PATH: the operator's, or the one that setup fetched. It fails if there is none.
use_go() {
  local dir
  if command -v go >/dev/null && go_works go; then return 0; fi
  for dir in "$cache/go$go_release/bin" /usr/local/go/bin; do
    if [ -x "$dir/go" ] && go_works "$dir/go"; then
      PATH=$dir:$PATH
      unset GOROOT
      return 0
    fi
  done
  return 1
}

need_go() {
  use_go || die "no Go that can build this module was found; put Go 1.21 or later on PATH, or run scripts/setup --build"
  # pkg-config's flags for libdpdk contain -include and -march, which cgo accepts only if allowed.
  export CGO_CFLAGS_ALLOW=${CGO_CFLAGS_ALLOW:-'.*'} CGO_LDFLAGS_ALLOW=${CGO_LDFLAGS_ALLOW:-'.*'}
}

# source_version is the version of the checkout: its tag, the last tag with the number of commits since (v0.1.0-5-g1234567), or "development".
source_version() { git -C "$root" describe --tags --match 'v[0-9]*' --dirty=-modified 2>/dev/null || echo development; }

# source_commit is the checkout's commit, with -modified behind it if files differ; "" if this isn't a git checkout.
source_commit() { git -C "$root" describe --always --abbrev=40 --exclude '*' --dirty=-modified 2>/dev/null || true; }

# set_hugepages asks the kernel for a total of $1 pages of 2 MiB; it may find fewer.
set_hugepages() {
  local file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
  if is_root; then
    echo "$1" 2>/dev/null >"$file" || true
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    echo "$1" | sudo -n tee "$file" >/dev/null || true
  else
    return 1
  fi
}

# reserve_hugepages raises the number of free 2 MiB pages to $1. It never lowers it, and fails if it can't raise it.
reserve_hugepages() {
  local wanted=$1 dir=/sys/kernel/mm/hugepages/hugepages-2048kB free total
  if [ ! -r "$dir/nr_hugepages" ]; then
    say "no hugepages: the kernel has no pages of 2 MiB (run with 'dpdk: {hugepages: false}')"
    return 1
  fi
  free=$(cat "$dir/free_hugepages") total=$(cat "$dir/nr_hugepages")
  if [ "$free" -ge "$wanted" ]; then
    say "hugepages: $free of $total pages of 2 MiB are free"
    return 0
  fi
  set_hugepages $((total + wanted - free)) || {
    say "no hugepages: needs root (as root: echo $((total + wanted - free)) > $dir/nr_hugepages)"
    return 1
  }
  free=$(cat "$dir/free_hugepages")
  say "hugepages: $free of $(cat "$dir/nr_hugepages") pages of 2 MiB are free, $wanted wanted"
  [ "$free" -ge "$wanted" ] || {
    set_hugepages "$total"
    say "the kernel found no more contiguous memory: reserve the pages at boot (scripts/host-setup --hugepages $wanted), or free memory"
    return 1
  }
}

# need_tool prints where the program of a Go package is, which it compiles once for each version: PACKAGE@VERSION. It uses the project's own Go, as a linter
# refuses code for a Go newer than the one it was compiled with.
need_tool() {
  local name=${1##*/} tool fetched
  tool=$cache/bin/${name/@/-}
  if [ ! -x "$tool" ]; then
    say "compiling $name, once"
    mkdir -p "$cache/bin"
    fetched=$(mktemp -d "$cache/bin/fetch.XXXXXX")
    if (cd / && GOFLAGS='' GOBIN=$fetched go install "$1"); then mv "$fetched/${name%@*}" "$tool"; fi
    rm -rf "$fetched"
  fi
  [ -x "$tool" ] && echo "$tool"
}
