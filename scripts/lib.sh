# shellcheck shell=bash disable=SC2034
# What the scripts beside this file share. To be sourced, never run; it changes nothing on the machine.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Toolchain and linter are kept outside the checkout, so that a new clone needn't fetch and compile them again.
cache=${CNPGATE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/cnpgate}

# The Go release that setup fetches where none is installed that can build the module (go.mod says which are).
go_release=1.26.8
lint_release=v2.12.2

# ethtool and friends live in sbin, which a non-root PATH leaves out.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  say "$@"
  exit 1
}

# usage_is prints the script's own header comment as its usage and stops, when one of the arguments asks for it.
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
  say "$1; $0 --help tells what there is"
  exit 2
}

is_root() { [ "$(id -u)" = 0 ]; }

# go_works tells whether the Go at $1 can build this module. A Go from 1.21 on fetches a newer one by itself, as go.mod asks,
# unless it was told not to.
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

# use_go puts a Go that can build the module on PATH: the operator's own, or the one that setup fetched. It fails without one.
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
  use_go || die "no Go that can build this module (go.mod) was found; run scripts/setup first"
  # pkg-config's flags for libdpdk hold -include and -march, which cgo takes only when told to.
  export CGO_CFLAGS_ALLOW=${CGO_CFLAGS_ALLOW:-'.*'} CGO_LDFLAGS_ALLOW=${CGO_LDFLAGS_ALLOW:-'.*'}
}
