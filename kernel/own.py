# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds the guests' own kernel, in which Poundlock's locks take the place of the kernel's.

No patch: Kbuild prefers a file of the object tree to that of the same name in the sources. So kernel/overlay is laid
there, with what it includes, beside objects of the sources of Debian's linux-source.

The sources and objects lie in build/kernel, or where POUNDLOCK_KERNEL_CACHE says, for others to share. There is an object tree for
each version of the sources, of the configuration and of the compiler; in it make finds by itself what a changed overlay
changes.
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
# The kernels there are, by what is added to it: one that is as fast as it can be; one that checks how its locks are used; and one
# that looks for data races, those that only a weaker memory than the machine's would show among them.
VARIANTS = {
    "plain": [],
    "checked": ["CONFIG_PROVE_LOCKING=y", "CONFIG_DEBUG_ATOMIC_SLEEP=y"],
    "kcsan": ["CONFIG_KCSAN=y", "CONFIG_KCSAN_STRICT=y", "CONFIG_KCSAN_WEAK_MEMORY=y", "# CONFIG_KCSAN_SELFTEST is not set"],
}
# In the object tree: what its configuration was made from.
CHOSEN = "poundlock.config"
# Where the overlay's files go, and all that they include.
PLACE = "kernel/locking"
IMAGE = "arch/x86/boot/bzImage"
MODULES = ["kernel/torture.ko", "kernel/locking/locktorture.ko", "kernel/locking/test-ww_mutex.ko"]

LIMIT = 3600  # seconds, of the kernel's build


class Failure(Exception):
    """The kernel cannot be built; the text says why."""


@dataclass
class Kernel:
    image: Path
    tree: Path  # for modules
    modules: list


def cache():
    return Path(os.environ.get("POUNDLOCK_KERNEL_CACHE", ROOT / "build/kernel"))


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def sources():
    """Debian's sources, unpacked, and their version."""
    version = version_of_sources()
    unpacked = cache() / f"linux-source-{version}"
    if not unpacked.exists():
        scratch = cache() / "unpacking"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        subprocess.run(["tar", "-C", scratch, "-xf", f"/usr/src/linux-source-{SERIES}.tar.xz"], check=True, timeout=LIMIT)
        (scratch / f"linux-source-{SERIES}").rename(unpacked)
    return unpacked, version


def overlay():
    """What is laid into the object tree: paths there, and the files."""
    core = ROOT / "core"
    laid = {Path(PLACE) / file.name: file for folder in (HERE / "overlay", ROOT / "world/kernel") for file in folder.iterdir()}
    laid |= {Path(PLACE) / file.relative_to(core): file for file in [*core.rglob("*.h"), core / "events.def"]}
    return laid


def lay(objects):
    """Lays the overlay into @objects; a file that is there already, as it is, keeps its time."""
    for place, file in overlay().items():
        target = objects / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != file.read_bytes():
            shutil.copy(file, target)


def make(unpacked, objects, *targets):
    """Runs make, whose output goes to build.log; of one that fails the end is in the exception."""
    log = objects / "build.log"
    command = ["make", "-C", unpacked, f"O={objects}", "ARCH=x86_64", f"KCONFIG_ALLCONFIG={objects / CHOSEN}",
               f"-j{os.cpu_count()}", *targets]
    with log.open("wb") as file:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                timeout=LIMIT).returncode
    if status:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise Failure(f"the kernel does not build ({log}):\n{end}")


@functools.cache
def version_of_sources():
    return output("dpkg-query", "-W", "-f", "${Version}", f"linux-source-{SERIES}")


def configuration(variant):
    """The configuration of the kernel @variant, and the object tree for it."""
    compiler = output("gcc", "--version").splitlines()[0]
    config = CONFIG.read_text() + "".join(f"{line}\n" for line in VARIANTS[variant])
    known_by = hashlib.sha256("\n".join([version_of_sources(), config, compiler]).encode()).hexdigest()[:12]
    return config, cache() / f"objects-{known_by}"


@functools.cache
def build(variant):
    """The kernel, built if it is not yet."""
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
