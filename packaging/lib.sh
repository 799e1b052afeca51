# SPDX-License-Identifier: Apache-2.0
# What packaging/run, packaging/test, packaging/lint and .ci/run share: the Debian packages each
# needs, and configure and build steps that do nothing, quietly, when there is nothing to do.
# To be sourced; the caller has `set -euo pipefail`. Everything here reports on stderr, so that a
# program's own output is all there is on stdout.

shardlens_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

# What the program is built from. CONTRIBUTING.md says why each library is used.
build_packages=(
    g++ cmake ninja-build pkg-config
    qt6-base-dev qt6-svg-dev
    libgraphviz-dev libboost-graph-dev libsqlite3-dev zlib1g-dev
    libfmt-dev nlohmann-json3-dev libcli11-dev
    fonts-dejavu-core
)
# Reference solvers, the SQLite shell, the validators of desktop files and ONNX's operator test data;
# only tests use them.
test_packages=(toulbar2 coinor-cbc sqlite3 desktop-file-utils appstream shared-mime-info
    libonnx-testdata)
lint_packages=(clang-format-19 clang-tidy-19 git)

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename -- "$0"): $*"; exit 1; }

is_installed() {
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

as_root() {
    if [[ $EUID -eq 0 ]]; then "$@"; else sudo -- "$@"; fi
}

# Installs those of the packages named that are missing; needs neither root nor network if none is.
install_packages() {
    local package missing=()
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    [[ ${#missing[@]} -eq 0 ]] && return
    command -v apt-get >/dev/null || die "these packages are needed: ${missing[*]}"
    [[ $EUID -eq 0 ]] || command -v sudo >/dev/null ||
        die "run once as root (or install sudo) to install: ${missing[*]}"
    say "Installing ${missing[*]}"
    local log
    log=$(mktemp)
    if ! { apt_get update && apt_get install --no-install-recommends "${missing[@]}"; } \
        >"$log" 2>&1; then
        cat -- "$log" >&2
        rm -f -- "$log"
        die "the packages could not be installed"
    fi
    rm -f -- "$log"
}

apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@"
}

# configure PRESET: unless it is done and neither the presets nor the place of the tree changed.
configure() {
    local preset=$1 dir="$shardlens_root/build/$1" fresh=() log
    if [[ -f "$dir/CMakeCache.txt" ]] &&
        ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$shardlens_root" "$dir/CMakeCache.txt"; then
        fresh=(--fresh)
    elif [[ "$dir/build.ninja" -nt "$shardlens_root/CMakePresets.json" ]]; then
        return
    fi
    log=$(mktemp)
    if ! (cd -- "$shardlens_root" && cmake "${fresh[@]}" --preset "$preset") >"$log" 2>&1; then
        cat -- "$log" >&2
        rm -f -- "$log"
        die "the build could not be configured (preset $preset)"
    fi
    rm -f -- "$log"
}

# build PRESET [TARGET]: on all cores.
build() {
    local preset=$1 target=${2:-all} dir="$shardlens_root/build/$1"
    configure "$preset"
    if ninja -C "$dir" -n "$target" 2>/dev/null | grep -q 'no work to do'; then return; fi
    say "Building ($preset)"
    ninja -C "$dir" -j "$(nproc)" "$target" >&2 || die "the build failed (preset $preset)"
}

# run_tests PRESET [CTEST OPTION]...: ctest's summary is the last output.
run_tests() {
    local preset=$1
    shift
    if [[ -z ${XDG_RUNTIME_DIR:-} ]]; then
        XDG_RUNTIME_DIR=$(mktemp -d)
        export XDG_RUNTIME_DIR
        chmod 0700 -- "$XDG_RUNTIME_DIR"
        trap 'rm -rf -- "$XDG_RUNTIME_DIR"' EXIT
    fi
    (cd -- "$shardlens_root" &&
        QT_QPA_PLATFORM=offscreen ctest --preset "$preset" --no-tests=error -j "$(nproc)" "$@")
}
