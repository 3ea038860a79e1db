# shellcheck shell=bash disable=SC2154
# Containers for tests, by buildah. Their base image, debian:12 or debian:13, is made with debootstrap, so nothing comes from an image registry.
# Source this file after lib.sh, with a folder in $work.

# build_tool runs buildah with its own storage, with copies instead of overlay mounts, and with containers as chroots, so that it also runs
# inside a container or a virtual machine.
build_tool() {
  BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs buildah --root "$work/storage" --runroot "$work/run" "$@"
}

# fail prints the end of the log and the message, and ends the script.
fail() {
  tail -n 40 "$work/log"
  die "$@"
}

# mirror prints the address from which this machine's apt fetches Debian.
mirror() {
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(SITE) $(CODENAME)' 2>/dev/null | awk '$2 == "bookworm" || $2 == "trixie" { print $1; exit }'
}

# make_base makes a minimal Debian of the release $2 (12 or 13) in the folder $1, with apt and Go set up as on this machine.
make_base() {
  local base=$1 from variable names=([12]=bookworm [13]=trixie)
  from=$(mirror)
  [ -n "$from" ] || die "this machine's apt has no mirror of Debian 12 (bookworm) or 13 (trixie)"
  debootstrap --variant=minbase "${names[$2]}" "$base" "$from" >"$work/log" 2>&1 || fail "debootstrap failed"
  if grep -qsw "${names[$2]}" /etc/apt/sources.list.d/debian.sources; then
    cp /etc/apt/sources.list.d/debian.sources "$base/etc/apt/sources.list.d/"
    rm -f "$base/etc/apt/sources.list"
  fi
  # A machine behind a proxy may trust its own certificate authorities.
  if [ -d /usr/local/share/ca-certificates ]; then
    mkdir -p "$base/usr/local/share/ca-certificates"
    find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$base/usr/local/share/ca-certificates/" {} +
  fi
  if [ -d /etc/apt/apt.conf.d ]; then
    grep -lrE 'Proxy|Verify|CaInfo' /etc/apt/apt.conf.d 2>/dev/null | xargs -r cp -t "$base/etc/apt/apt.conf.d/" || true
  fi
  mkdir -p "$base/root/.config/go"
  for variable in GOPROXY GOSUMDB GONOSUMDB GOFLAGS; do
    if [ -n "${!variable:-}" ]; then echo "$variable=${!variable}" >>"$base/root/.config/go/env"; fi
  done
}

# import makes an image with the names $2... of the folder $1.
import() {
  local container name folder=$1
  shift
  container=$(build_tool from scratch)
  tar -C "$folder" -cf "$work/base.tar" .
  build_tool add --quiet "$container" "$work/base.tar" / >/dev/null
  for name in "$@"; do build_tool commit --quiet "$container" "$name" >/dev/null; done
  build_tool rm "$container" >/dev/null
  rm -rf --one-file-system "$folder" "$work/base.tar"
}

# base_image makes the images debian:N and debian:N-slim of the release $1.
base_image() {
  say "debootstrap"
  make_base "$work/base" "$1"
  import "$work/base" "debian:$1" "debian:$1-slim"
}

# remove_containers removes what was made, and $work.
remove_containers() {
  build_tool rm --all >/dev/null 2>&1 || true
  # Never delete through a mount: a mounted folder may belong to the machine.
  if grep -q " $work/" /proc/mounts; then
    say "left $work behind: something is still mounted in it"
  else
    rm -rf --one-file-system "$work"
  fi
}
