# shellcheck shell=bash disable=SC2034
# Shared by the scripts beside it; sourced, not run. Leaves the shell in the repository's root.
set -euo pipefail
script_name="script/$(basename "$0")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "$script_name: $*"
  exit 1
}

# A heading between the steps of a longer script.
step() {
  if [[ -t 2 ]]; then printf '\n\033[1m== %s\033[0m\n' "$*" >&2; else say "" "== $*"; fi
}

# Debian packages by what needs them.
packages_fetch=(ca-certificates python3 python3-pip)
packages_build=(
  g++ cmake ninja-build ccache git pkg-config python3
  nlohmann-json3-dev libcli11-dev libfmt-dev libssl-dev libutf8proc-dev
  libgtest-dev librapidcheck-dev libsimde-dev
)
packages_test=(
  libbenchmark-dev binutils clang-format-14 clang-tidy-14 clang-14 libclang-rt-14-dev
  chromium chromium-driver
)

# install_packages NAME...: installs those that are missing, and only those.
install_packages() {
  local missing=() package state
  command -v dpkg-query >/dev/null ||
    fail "these packages are needed and this is not a Debian system: $*"
  for package in "$@"; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $state == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      fail "please install these packages as root (there is no sudo here): ${missing[*]}"
    as_root=(sudo)
  fi
  say "$script_name: installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
    -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0)
  local log
  log=$(mktemp)
  # Lists that cannot be renewed are no reason to give up: what is needed may be known already.
  if ! { "${apt[@]}" update || true; "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1; then
    grep -E '^[EW]:' "$log" >&2 || true
    rm -f "$log"
    fail "apt-get could not install ${missing[*]}"
  fi
  rm -f "$log"
}

# Where fetched models stand, outside the repository.
cache_folder() {
  printf '%s\n' "${PACELINE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/paceline}"
}

# build_preset PRESET [TARGET...]: configures and builds; all of its output goes to standard error.
build_preset() {
  local preset=$1
  shift
  script/fetch uplot >/dev/null || say "$script_name: HTML reports will have no plots"
  cmake --preset "$preset" >&2
  cmake --build --preset "$preset" --parallel "$(nproc)" ${@:+--target "$@"} >&2
}
