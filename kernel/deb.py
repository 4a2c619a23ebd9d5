#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds Debian packages of a kernel with Poundlock's locks, and tests them.

    ./dev kernel --deb FOLDER [--flavour amd64] [--linux 6.12] [--reduced MODULES]
    ./dev kernel --deb FOLDER --boot
    dpkg -i FOLDER/linux-image-*.deb

The sources are Debian's linux-source with the patches of patch.py. The configuration is Debian's
linux-config with the option LOCK_POUNDLOCK and a name of its own. The kernel's own `make
bindeb-pkg` builds the packages: image, headers and, if configured, debugging symbols.

--boot tests packages that are built (installed.py).
"""

import argparse
import lzma
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import installed  # noqa: E402
import own  # noqa: E402
import patch  # noqa: E402
from report import Count  # noqa: E402

TOOLS = [
    "dpkg-dev",
    "debhelper",
    "kmod",
    "cpio",
    "rsync",
    "libssl-dev",
    "openssl",
    "dwarves",
]
FLAVOUR = "cloud-amd64"
GUEST = "guest"  # the flavour that is not Debian's
# Options that Debian's build adds to the configuration of linux-config.
ADDED = {"BUILD_SALT", "MODULE_SIG_ALL", "MODULE_SIG_KEY", "SYSTEM_TRUSTED_KEYS"}
# Options that describe the compiler and its tools.
DESCRIPTIVE = re.compile(r"(CC|AS|LD|PAHOLE|RUSTC?)_HAS_|\w+_VERSION(_TEXT)?$")
# A reduced kernel has neither debugging symbols nor BTF, which take most of the build's time.
REDUCED = [
    "# CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT is not set",
    "# CONFIG_DEBUG_INFO_DWARF5 is not set",
    "CONFIG_DEBUG_INFO_NONE=y",
]
# The C library's headers have the package name of Debian's, which they must not replace.
UNWANTED = "linux-libc-dev"

LIMIT = 8 * 3600  # seconds, for the build of all of Debian's modules


def packages(series):
    """The Debian packages that a build needs."""
    return [*own.packages(series), f"linux-config-{series}", *TOOLS]


# ---- Configuration ----


def flavours(series):
    """The flavours of Debian's kernels of @series that the option exists for, and their
    configurations."""
    files = Path(f"/usr/src/linux-config-{series}").glob("config.amd64_none_*.xz")
    return {re.search(r"_none_(.+)\.xz", file.name).group(1): file for file in files}


def debian_config(series, flavour):
    """Debian's configuration of the @flavour of @series."""
    found = flavours(series)
    if flavour not in found:
        raise own.Failure(
            f"Linux {series} has no flavour '{flavour}', only: {' '.join(sorted([*found, GUEST]))}"
        )
    return lzma.decompress(found[flavour].read_bytes()).decode()


def options(text):
    """The options that the configuration @text sets, and their values.

    >>> options("CONFIG_A=y\\n# CONFIG_B is not set\\nCONFIG_C=\\"x\\"\\n")
    {'A': 'y', 'C': '"x"'}
    """
    return dict(re.findall(r"^CONFIG_(\w+)=(.*)$", text, re.MULTILINE))


def unkept(debian, config, changes):
    """The options that @config does not take over from the configuration @debian, although they
    are none of @changes, of those that Debian's build adds or of those that describe the compiler.

    >>> unkept("CONFIG_A=y\\nCONFIG_B=m\\n", "CONFIG_A=y\\nCONFIG_B=y\\nCONFIG_NEW=y\\n", [])
    ['B', 'NEW']
    >>> unkept("CONFIG_A=y\\nCONFIG_B=m\\n", "CONFIG_A=y\\n", ["# CONFIG_B is not set"])
    []
    >>> unkept("CONFIG_GCC_VERSION=1\\n", "CONFIG_GCC_VERSION=2\\nCONFIG_BUILD_SALT=\\"\\"\\n", [])
    []
    >>> unkept("# CONFIG_A is not set\\n", "CONFIG_A=y\\n", ["CONFIG_AB=y"])
    ['A']
    """
    old, new = options(debian), options(config)
    changed = {own.option_of(line).removeprefix("CONFIG_") for line in changes} | ADDED
    return sorted(
        name
        for name in old.keys() | new.keys()
        if old.get(name) != new.get(name) and name not in changed and not DESCRIPTIVE.match(name)
    )


class Build:
    """A kernel of @series in Debian's configuration of @flavour. With the file @modules, which has
    the output of lsmod, only these of its modules are built."""

    def __init__(self, series, flavour, modules=None):
        self.series, self.modules = series, modules
        self.base = self.based_on(flavour)
        name = f"-poundlock-{flavour}{'-reduced' if modules else ''}"
        self.changes = [f"CONFIG_{patch.OPTION}=y", f'CONFIG_LOCALVERSION="{name}"']
        inputs = [self.base, *self.changes]
        if modules:
            inputs += [*REDUCED, modules.read_text()]
        # make bindeb-pkg puts the packages beside the object tree.
        self.folder = own.cache() / f"deb-{own.known_by(series, *inputs)}"
        self.objects = self.folder / "objects"
        self.config = self.objects / ".config"

    def based_on(self, flavour):
        """The text of the configuration that the package's is made from."""
        return debian_config(self.series, flavour)

    def configure(self, tree):
        """Configures the object tree for the sources @tree."""
        self.objects.mkdir(parents=True, exist_ok=True)
        self.configure_all(tree)
        if self.modules:
            self.config.write_text(own.configured(self.config.read_text(), REDUCED))
            own.make(tree, self.objects, "localmodconfig", LSMOD=str(self.modules.resolve()))
            own.check_configured(self.objects, REDUCED)
        own.check_configured(self.objects, self.changes)

    def configure_all(self, tree):
        """Configures all of Debian's modules."""
        self.config.write_text(own.configured(self.base, self.changes))
        own.make(tree, self.objects, "olddefconfig")
        if lost := unkept(self.base, self.config.read_text(), self.changes):
            raise own.Failure(f"Debian's configuration is not kept: CONFIG_{' CONFIG_'.join(lost)}")

    def packages(self):
        """Builds the packages as far as necessary, and returns them."""
        tree = patch.sources(self.series)
        self.configure(tree)
        for old in self.folder.glob("*.deb"):
            old.unlink()
        print(f"     {tree.name} is built in {self.objects}, if that is not done yet", flush=True)
        compiler = ["CC=ccache gcc"] if shutil.which("ccache") else []
        # First of all, since the rest may take hours.
        own.make(tree, self.objects, *compiler, "kernel/locking/")
        own.check_complete(self.objects / patch.FOLDER)
        own.make(
            tree,
            self.objects,
            *compiler,
            "bindeb-pkg",
            limit=LIMIT,
            KDEB_PKGVERSION=f"{own.version_of_sources(self.series)}+poundlock{version()}",
            KDEB_CHANGELOG_DIST="bookworm",
            KBUILD_BUILD_USER="poundlock",
            KBUILD_BUILD_HOST="localhost",
            DEBFULLNAME="Poundlock",
            DEBEMAIL="poundlock@localhost",
        )
        return sorted(
            file for file in self.folder.glob("*.deb") if not file.name.startswith(UNWANTED)
        )


class GuestBuild(Build):
    """A kernel in the small configuration of the tests' guests, which boots Debian in one."""

    def based_on(self, flavour):
        return own.configured(own.CONFIG.read_text(), own.VARIANTS["packaged"])

    def configure_all(self, tree):
        (self.objects / own.CHOSEN).write_text(own.configured(self.base, self.changes))
        own.make(tree, self.objects, "allnoconfig")
        own.check_configured(self.objects, own.VARIANTS["packaged"])


def version():
    """Poundlock's version."""
    return re.search(r'^version = "(.+)"$', (own.ROOT / "Cargo.toml").read_text(), re.M).group(1)


# ---- Command line ----


def build(folder, series, flavour, modules):
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise own.Failure(f"{folder} is not an empty folder")
    if modules and not modules.is_file():
        raise own.Failure(f"no file {modules}")
    own.check_installed(packages(series))
    kind = GuestBuild if flavour == GUEST else Build
    built = kind(series, flavour, modules).packages()
    folder.mkdir(parents=True, exist_ok=True)
    for file in built:
        print(shutil.copy(file, folder))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the packages")
    parser.add_argument(
        "--flavour",
        help=f"of Debian's kernel whose configuration is used (default: {FLAVOUR}), or '{GUEST}', "
        "the small configuration of the tests' guests",
    )
    parser.add_argument(
        "--linux", choices=own.SERIES, help=f"version of the sources (default: {own.SERIES[0]})"
    )
    parser.add_argument(
        "--reduced",
        type=Path,
        metavar="MODULES",
        help="without debugging symbols, and only the modules in this file, the output of lsmod",
    )
    parser.add_argument(
        "--boot",
        action="store_true",
        help="install, boot and remove the packages of FOLDER in a guest, as root",
    )
    arguments = parser.parse_args()
    if arguments.boot and (arguments.flavour or arguments.linux or arguments.reduced):
        parser.error("--boot takes no other option")
    return arguments


def main():
    arguments = parsed()
    if arguments.boot:
        count = Count()
        installed.check(arguments.folder, count)
        count.sum_up()
        return count.failed > 0
    series = arguments.linux or own.SERIES[0]
    build(arguments.folder, series, arguments.flavour or FLAVOUR, arguments.reduced)
    return False


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (own.Failure, subprocess.SubprocessError, OSError) as problem:
        sys.exit(f"kernel: {problem}")
