#!/usr/bin/env bash
# Installs the stock engines that the interop suite and the benchmarks drive:
# @lancedb/lancedb 0.39.0 and 0.31.0 (Lance 12 and 8) and pylance 14.0.2.
#
# They go to interop/.engines (or $REHOME_ENGINES), pinned to exact versions by the
# files under interop/engines. Running it again does nothing unless a pin changed.
# Needs node, npm and python3 with venv; the native libraries are those of linux x64.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dest=${REHOME_ENGINES:-$here/.engines}

fail() {
	echo "interop/setup.sh: $*" >&2
	exit 1
}

for tool in node npm python3 sha256sum; do
	command -v "$tool" >/dev/null || fail "$tool is not installed"
done
platform=$(node -p 'process.platform + "-" + process.arch')
[ "$platform" = linux-x64 ] || fail "the engines are pinned for linux-x64, this is $platform"

# The stamp is written when the engine has answered, so that an interrupted run
# leaves nothing that looks whole.
install() {
	local name=$1 want dir
	want=$(cat "$here/setup.sh" "$here/engines/$name"/* | sha256sum | cut -d' ' -f1)
	if [ -f "$dest/$name/.installed" ] && [ "$(cat "$dest/$name/.installed")" = "$want" ]; then
		echo "$name: already installed"
		return
	fi
	rm -rf "${dest:?}/$name"
	dir=$dest/$name
	mkdir -p "$dir"
	cp "$here/engines/$name"/* "$dir/"
	case $name in
	lancedb-*) install_node "$dir" "${name#lancedb-}" ;;
	pylance-*) install_python "$dir" "${name#pylance-}" ;;
	esac || fail "could not install $name"
	echo "$want" >"$dir/.installed"
	echo "$name: installed"
}

# Optional dependencies are embedding models, of no use here; the native library
# is a plain dependency in our package.json. Version 0.39 asks for node 22 and
# runs on 20, so the engine check only warns.
install_node() {
	(
		cd "$1" &&
			npm install --no-package-lock --omit=optional --ignore-scripts --no-audit --no-fund --engine-strict=false --loglevel=error &&
			node -e 'require("@lancedb/lancedb").connect' &&
			[ "$(node -p 'require("./node_modules/@lancedb/lancedb/package.json").version')" = "$2" ]
	)
}

install_python() {
	python3 -m venv "$1/venv" &&
		"$1/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -r "$1/requirements.txt" &&
		"$1/venv/bin/python" -c 'import sys, lance; sys.exit(0 if lance.__version__ == sys.argv[1] else "got version " + lance.__version__)' "$2"
}

mkdir -p "$dest"
install lancedb-0.39.0
install lancedb-0.31.0
install pylance-14.0.2
