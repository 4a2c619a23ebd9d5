# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds the guests' own kernel, in which Poundlock's locks replace the kernel's.

There is no patch: Kbuild prefers a file in the object tree to the source file of the same name. So
kernel/overlay and its includes are copied into the object tree of Debian's linux-source.

Sources and objects are in build/kernel, or in POUNDLOCK_KERNEL_CACHE to share them. Each version of
the sources, configuration and compiler has an object tree of its own, in which make rebuilds what a
changed overlay affects.
"""

import functools
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

SERIES = "6.1"
PACKAGES = [f"linux-source-{SERIES}", "xz-utils", "bc", "flex", "bison", "libelf-dev"]
CONFIG = HERE / "guest/config"
# The kernels, by their additions to the configuration: as fast as possible; with lockdep; with a
# detector of data races that also models weak memory.
VARIANTS = {
    "plain": [],
    "checked": ["CONFIG_PROVE_LOCKING=y", "CONFIG_DEBUG_ATOMIC_SLEEP=y"],
    "kcsan": [
        "CONFIG_KCSAN=y",
        "CONFIG_KCSAN_STRICT=y",
        "CONFIG_KCSAN_WEAK_MEMORY=y",
        "# CONFIG_KCSAN_SELFTEST is not set",
    ],
}
# In the object tree: the input of its configuration.
CHOSEN = "poundlock.config"
# Destination of the overlay and its includes.
PLACE = "kernel/locking"
IMAGE = "arch/x86/boot/bzImage"
MODULES = ["kernel/torture.ko", "kernel/locking/locktorture.ko", "kernel/locking/test-ww_mutex.ko"]

LIMIT = 3600  # seconds, for the kernel's build


class Failure(Exception):
    """The kernel cannot be built; the text says why."""


@dataclass
class Kernel:
    image: Path
    tree: Path  # to build modules against
    modules: list


def cache():
    return Path(os.environ.get("POUNDLOCK_KERNEL_CACHE", ROOT / "build/kernel"))


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def sources():
    """Debian's unpacked sources, and their version."""
    version = version_of_sources()
    unpacked = cache() / f"linux-source-{version}"
    if not unpacked.exists():
        scratch = cache() / "unpacking"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        subprocess.run(
            ["tar", "-C", scratch, "-xf", f"/usr/src/linux-source-{SERIES}.tar.xz"],
            check=True,
            timeout=LIMIT,
        )
        (scratch / f"linux-source-{SERIES}").rename(unpacked)
    return unpacked, version


def overlay():
    """The overlay: destination paths in the object tree, and their files."""
    core = ROOT / "core"
    laid = {
        Path(PLACE) / file.name: file
        for folder in (HERE / "overlay", ROOT / "world/kernel")
        for file in folder.iterdir()
    }
    laid |= {
        Path(PLACE) / file.relative_to(core): file
        for file in [*core.rglob("*.h"), core / "events.def"]
    }
    return laid


def lay(objects):
    """Copies the overlay into @objects; unchanged files keep their time stamp."""
    for place, file in overlay().items():
        target = objects / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != file.read_bytes():
            shutil.copy(file, target)


def make(unpacked, objects, *targets):
    """Runs make, with output in build.log. A failure's exception has the end of the log."""
    log = objects / "build.log"
    command = [
        "make",
        "-C",
        unpacked,
        f"O={objects}",
        "ARCH=x86_64",
        f"KCONFIG_ALLCONFIG={objects / CHOSEN}",
        f"-j{os.cpu_count()}",
        *targets,
    ]
    with log.open("wb") as file:
        status = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, timeout=LIMIT
        ).returncode
    if status:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise Failure(f"the kernel does not build ({log}):\n{end}")


@functools.cache
def version_of_sources():
    return output("dpkg-query", "-W", "-f", "${Version}", f"linux-source-{SERIES}")


def configuration(variant):
    """The configuration of the kernel @variant, and its object tree."""
    compiler = output("gcc", "--version").splitlines()[0]
    config = CONFIG.read_text() + "".join(f"{line}\n" for line in VARIANTS[variant])
    known_by = hashlib.sha256(
        "\n".join([version_of_sources(), config, compiler]).encode()
    ).hexdigest()[:12]
    return config, cache() / f"objects-{known_by}"


@functools.cache
def build(variant):
    """The kernel @variant; builds it if necessary."""
    unpacked, version = sources()
    config, objects = configuration(variant)
    objects.mkdir(parents=True, exist_ok=True)
    (objects / CHOSEN).write_text(config)
    lay(objects)
    if not (objects / ".config").exists():
        make(unpacked, objects, "allnoconfig")
    print(f"     the kernel {version} is built in {objects}, if that is not done yet", flush=True)
    make(unpacked, objects, "bzImage", "modules")
    return Kernel(objects / IMAGE, objects, [objects / module for module in MODULES])
