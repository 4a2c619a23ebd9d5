#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# packages.sh [LIMIT]: builds the Debian packages, checks them with lintian, and installs, runs and
# removes them in a fresh Debian 12 root, by the commands of docs/install.md. Also installs build/
# with DESTDIR and with a prefix. The root is kept as an archive in build/packages/; making it may
# take LIMIT seconds (default: 600). Reports what it skipped without root rights, debootstrap or a
# mirror. Ends with `N passed, N failed`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$PWD/build/packages
root=$work/root
archive=$work/debian12.tar
limit=${1:-600}
passed=0 failed=0

# check WHAT COMMAND...
check() {
	local what=$1
	shift
	if ("$@") >"$work/check.log" 2>&1 </dev/null; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $what:"
		cat "$work/check.log"
	fi
}

finish() {
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ]
	exit
}

# commands_of SECTION: the indented commands below that heading of docs/install.md
commands_of() {
	awk -v heading="## $1" '
		/^## / { inside = $0 == heading }
		inside && /^    / { print substr($0, 5) }' docs/install.md
}

# ---- Building ----

build_packages() {
	./dev packages
	[ "$(find "$work" -maxdepth 1 -name '*.deb' | wc -l)" = 3 ]
}

lint() {
	lintian --allow-root --fail-on error "$work"/*.deb
}

# ---- Installing from source ----

# The installation runs wherever it lies, and is undone as docs/install.md describes.
installed_anywhere() {
	set -e
	rm -rf "$work/destdir" "$work/usr"
	DESTDIR=$work/destdir cmake --install build --prefix /usr
	mv "$work/destdir/usr" "$work/usr"
	local usr=$work/usr
	"$usr/bin/poundlock" run -l mcs -- true
	"$usr/bin/poundlock" sim run -m i9-12900k -w cna-map -l mcs -t 2 -n 1 -d 100us
	[ -n "$(find "$usr/share/doc" -name LICENSE-MIT)" ]
}

installed_and_removed() {
	set -e
	cmake --install build --prefix "$work/prefix"
	[ -e "$work/prefix/bin/poundlock" ]
	eval "$(commands_of 'From source' | grep xargs)"
	[ -z "$(find "$work/prefix" -type f -o -type l)" ]
}

# ---- In the fresh root ----

# The mirror that apt uses for this release.
mirror() {
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' \
		'Origin: Debian' | awk '{ print; exit }'
}

why_no_root() {
	if [ "$(id -u)" != 0 ]; then
		echo "only root can make a Debian root"
	elif ! command -v debootstrap >/dev/null; then
		echo "debootstrap is not installed"
	elif ! unshare --mount true 2>/dev/null; then
		echo "this system permits no mount namespaces"
	elif [ -z "$(mirror)" ]; then
		echo "apt has no mirror of Debian 12"
	elif [ ! -s "$archive" ] && ! make_archive >"$work/debootstrap.log" 2>&1; then
		echo "no root within $limit s: $(tail -n 1 "$work/debootstrap.log")"
	fi
}

make_archive() {
	rm -rf "$root"
	timeout "$limit" debootstrap --variant=minbase --include=gcc,libc6-dev,pkg-config bookworm \
		"$root" "$(mirror)" &&
		rm -rf "$root"/var/cache/apt/archives/*.deb &&
		tar -C "$root" -cf "$archive.part" . &&
		mv "$archive.part" "$archive"
}

# inside COMMAND...: runs a shell command line in the root. Its mounts end with it.
inside() {
	unshare --mount --pid --fork bash -c '
		mount -t proc proc "$0/proc" && exec chroot "$0" /bin/bash -euc "$1"' "$root" "$*"
}

# The files in the root, apart from dpkg's own records and logs.
listing() {
	(cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/log \
		-o -path ./var/lib/apt \
		-o -path ./var/cache -o -path ./proc -o -path ./packages \) -prune -o -print | sort)
}

removed() {
	set -e
	inside "$(commands_of 'Debian packages' | grep 'apt remove')"
	listing | diff "$work/before" -
}

mkdir -p "$work"
check "building the packages" build_packages
[ $failed -eq 0 ] || finish
if command -v lintian >/dev/null; then
	check "lintian" lint
else
	echo "skipped: lintian is not installed"
fi
check "an installation with DESTDIR" installed_anywhere
check "an installation and its removal" installed_and_removed

why=$(why_no_root)
if [ -n "$why" ]; then
	echo "skipped: the packages in a fresh root: $why"
	finish
fi
rm -rf "$root"
mkdir -p "$root/packages/build/packages"
tar -C "$root" -xf "$archive"
cp "$work"/*.deb "$root/packages/build/packages/"
cp tests/consumer/project/main.c "$root/packages/"
listing >"$work/before"

check "installing" inside "cd /packages && $(commands_of 'Debian packages' | grep 'apt install')"
check "the version" inside "poundlock --version"
check "running a program" inside \
	"poundlock run -l mcs -- sh -c 'grep -q libpoundlock-preload /proc/\$\$/maps'"
check "the machines and workloads" inside \
	"poundlock sim run -m i9-12900k -w cna-map -l mcs -t 2 -n 1 -d 100us"
check "the manual" inside "zcat /usr/share/man/man1/poundlock.1.gz | grep -q 'SH NAME'"
check "completions" inside \
	"source /usr/share/bash-completion/completions/poundlock && complete -p poundlock"
check "a program, with the shared library" inside \
	"cd /packages && gcc main.c \$(pkg-config --cflags --libs poundlock) -o main && ./main &&
		ldd main | grep -q libpoundlock.so.0"
check "a program, with the static library" inside \
	"cd /packages &&
		gcc -static main.c \$(pkg-config --cflags --libs --static poundlock) -o main &&
		./main"
check "removing" removed
rm -rf "$root" "$work/destdir" "$work/usr" "$work/prefix"
finish
