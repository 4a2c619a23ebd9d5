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
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# Linux's long-term series that the overlay is tested with, the first by default. overlay/choice.h
# refuses later versions.
SERIES = ["6.1", "6.12"]
TOOLS = ["xz-utils", "bc", "flex", "bison", "libelf-dev"]
# Further packages for the kernel with BPF and its programs.
BPF_TOOLS = ["dwarves", "clang", "libbpf-dev", "bpftool", "libtraceevent-dev", "python3-drgn"]
# Parts that the guests' perf does not have, so that it needs few libraries.
WITHOUT = (
    "LIBPERL LIBPYTHON SLANG LIBUNWIND LIBNUMA LIBZSTD LZMA LIBCRYPTO LIBBABELTRACE LIBPFM4 "
    "LIBLLVM CAPSTONE DWARF SDT JVMTI JEVENTS DEMANGLE AUXTRACE"
)
CONFIG = HERE / "guest/config"
# The kernels, by their changes of the configuration: as fast as possible; like those of
# distributions; built from patched sources (patch.py); as a package (deb.py) that boots Debian's
# userland from a disk; with lockdep; with a detector of data races that also models weak memory;
# with policies as BPF programs.
VARIANTS = {
    "plain": [],
    "distribution": [
        "# CONFIG_PREEMPT_NONE is not set",
        "CONFIG_PREEMPT_VOLUNTARY=y",
        "CONFIG_PREEMPT_DYNAMIC=y",
        "# CONFIG_HZ_100 is not set",
        "CONFIG_HZ_250=y",
        "CONFIG_HYPERVISOR_GUEST=y",
        "CONFIG_PARAVIRT=y",
        "CONFIG_PARAVIRT_SPINLOCKS=y",
        "CONFIG_KVM_GUEST=y",
    ],
    "patched": ["CONFIG_LOCK_POUNDLOCK=y"],
    "packaged": [
        "CONFIG_LOCK_POUNDLOCK=y",
        "CONFIG_NET=y",
        "CONFIG_UNIX=y",
        "CONFIG_INOTIFY_USER=y",
        "CONFIG_FHANDLE=y",
        "CONFIG_TMPFS_XATTR=y",
        "CONFIG_RD_ZSTD=y",
        "CONFIG_PCI_MSI=y",
        "CONFIG_BLOCK=y",
        "CONFIG_BLK_DEV=y",
        "CONFIG_VIRTIO_MENU=y",
        "CONFIG_VIRTIO_PCI=m",
        "CONFIG_VIRTIO_BLK=m",
        "CONFIG_EXT4_FS=m",
    ],
    "checked": ["CONFIG_PROVE_LOCKING=y", "CONFIG_DEBUG_ATOMIC_SLEEP=y"],
    "kcsan": [
        "CONFIG_KCSAN=y",
        "CONFIG_KCSAN_STRICT=y",
        "CONFIG_KCSAN_WEAK_MEMORY=y",
        "# CONFIG_KCSAN_SELFTEST is not set",
    ],
    "bpf": [
        "CONFIG_NET=y",
        "CONFIG_BPF_SYSCALL=y",
        "CONFIG_BPF_JIT=y",
        "CONFIG_BPF_JIT_ALWAYS_ON=y",
        "CONFIG_PERF_EVENTS=y",
        "CONFIG_FTRACE=y",
        "CONFIG_KPROBES=y",
        "CONFIG_KPROBE_EVENTS=y",
        "CONFIG_BPF_EVENTS=y",
        # drgn reads the running kernel.
        "CONFIG_PROC_KCORE=y",
        # perf's BPF programs use symbols of data.
        "CONFIG_KALLSYMS_ALL=y",
        "# CONFIG_DEBUG_INFO_NONE is not set",
        "CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT=y",
        "CONFIG_DEBUG_INFO_BTF=y",
        "# CONFIG_DEBUG_INFO_BTF_MODULES is not set",
    ],
}
# In the object tree: the input of its configuration.
CHOSEN = "poundlock.config"
# Destination of the overlay and its includes.
PLACE = "kernel/locking"
# The functions of each replaced file that are stock's under every choice: those that initialise a
# lock, those of ww_mutex, and one that reads counts.
UNCHANGED = {
    "mutex": {"__mutex_init"}
    | {f"ww_mutex_{name}" for name in ("lock", "lock_interruptible", "trylock", "unlock")},
    "rwsem": {"__init_rwsem"},
    "qspinlock": {"lockevent_read"},
}
# Prefixes of functions that need no replacement: stock's under another name, the world's, those of
# policies as BPF programs, of trace points, and of spin locks of hypervisors.
NEED_NONE = (
    "stock_",
    "w_",
    "own_policy_",
    "__traceiter_",
    "__probestub_",
    "__pv_",
    "__raw_callee_save___pv_",
)
IMAGE = "arch/x86/boot/bzImage"
MODULES = [
    "kernel/torture.ko",
    "kernel/locking/locktorture.ko",
    "kernel/locking/test-ww_mutex.ko",
    "kernel/rcu/rcutorture.ko",
]

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


def is_installed(package):
    found = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True
    )
    return found.stdout == "installed"


def missing(packages):
    return [package for package in packages if not is_installed(package)]


def check_installed(packages):
    if lacking := missing(packages):
        raise Failure(f"not installed: {' '.join(lacking)}")


def packages(series, variant=None):
    return [f"linux-source-{series}", *TOOLS, *(BPF_TOOLS if variant == "bpf" else [])]


def sources(series):
    """Debian's unpacked sources of @series."""
    unpacked = cache() / f"linux-source-{version_of_sources(series)}"
    if not unpacked.exists():
        scratch = cache() / "unpacking"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        subprocess.run(
            ["tar", "-C", scratch, "-xf", f"/usr/src/linux-source-{series}.tar.xz"],
            check=True,
            timeout=LIMIT,
        )
        (scratch / f"linux-source-{series}").rename(unpacked)
    return unpacked


def laid():
    """The overlay and its includes: their paths beside each other, and their files."""
    core = ROOT / "core"
    files = {
        Path(file.name): file
        for folder in (HERE / "overlay", ROOT / "world/kernel")
        for file in folder.iterdir()
    }
    return files | {
        file.relative_to(core): file for file in [*core.rglob("*.h"), core / "events.def"]
    }


def lay(objects):
    """Copies the overlay into @objects; unchanged files keep their time stamp."""
    for place, file in laid().items():
        target = objects / PLACE / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != file.read_bytes():
            shutil.copy(file, target)


def make(unpacked, objects, *targets, limit=LIMIT, **environment):
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
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            timeout=limit,
            env={**os.environ, **environment},
        ).returncode
    if status:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise Failure(f"{unpacked.name} does not build ({log}):\n{end}")


@functools.cache
def version_of_sources(series):
    return output("dpkg-query", "-W", "-f", "${Version}", f"linux-source-{series}")


def option_of(line):
    """The option that @line of a configuration sets or unsets, or nothing."""
    return re.search(r"\bCONFIG_\w+|$", line).group()


def configured(text, changes):
    """The configuration @text with @changes, which replace lines of the same options.

    >>> configured("CONFIG_A=y\\n# CONFIG_B is not set\\n", ["CONFIG_B=y"])
    'CONFIG_A=y\\nCONFIG_B=y\\n'
    """
    changed = {option_of(line) for line in changes}
    kept = [line for line in text.splitlines() if option_of(line) not in changed]
    return "".join(f"{line}\n" for line in [*kept, *changes])


def known_by(series, *inputs):
    """The name of what is built from the sources of @series and @inputs by this compiler."""
    compiler = output("gcc", "--version").splitlines()[0]
    text = "\n".join([version_of_sources(series), *inputs, compiler])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def configuration(variant, series):
    """The configuration of the kernel @variant of @series, and its object tree."""
    config = configured(CONFIG.read_text(), VARIANTS[variant])
    return config, cache() / f"objects-{known_by(series, config)}"


def forgotten(file, functions):
    """The functions of stock's @file that are neither replaced nor known to stay stock's: they
    would misread the words of our locks. @functions are the global ones of the overlay's object, in
    which a replaced function has stock's as its twin.

    >>> forgotten("rwsem", {"__init_rwsem", "up_read", "stock_up_read", "w_park"})
    []
    >>> forgotten("mutex", {"__traceiter_contention_begin", "__probestub_contention_begin"})
    []
    >>> forgotten("rwsem", {"_down_nest_lock", "stock_down_nest_lock", "down_new"})
    ['down_new']
    >>> forgotten("qspinlock", {"native_queued_spin_lock_slowpath", "stock_spin_lock_slowpath"})
    []
    """

    def twin(name):
        return "stock_" + re.sub("^_|^(native_)?queued_", "", name)

    return sorted(
        name
        for name in functions - UNCHANGED[file]
        if not name.startswith(NEED_NONE) and twin(name) not in functions
    )


def check_complete(place):
    """Fails if the overlay's objects in @place do not replace all functions of stock's."""
    for file in UNCHANGED:
        lines = output("nm", "--defined-only", place / f"{file}.o").splitlines()
        symbols = [line.split()[1:] for line in lines]
        functions = {name for kind, name in symbols if kind == "T" and not name.startswith("__SCT")}
        if found := forgotten(file, functions):
            raise Failure(f"{file}.c of this kernel has functions without replacement: {found}")


def check_configured(objects, changes):
    """Fails if the configuration of @objects lacks an option that @changes enable."""
    lines = (objects / ".config").read_text().splitlines()
    if lost := [line for line in changes if line.endswith("=y") and line not in lines]:
        raise Failure(f"this kernel cannot be configured with {' '.join(lost)}")


def build_in(tree, variant, series, place, prepare=lambda objects: None):
    """Builds the kernel @variant of @series from the sources @tree, if necessary. Before that,
    @prepare is called with the object tree. @place: where in it the locks' objects will be."""
    config, objects = configuration(variant, series)
    objects.mkdir(parents=True, exist_ok=True)
    (objects / CHOSEN).write_text(config)
    prepare(objects)
    if not (objects / ".config").exists():
        make(tree, objects, "allnoconfig")
    check_configured(objects, VARIANTS[variant])
    print(f"     {tree.name} is built in {objects}, if that is not done yet", flush=True)
    make(tree, objects, "bzImage", "modules")
    check_complete(objects / place)
    return Kernel(objects / IMAGE, objects, [objects / module for module in MODULES])


@functools.cache
def build(variant, series):
    """The kernel @variant of @series with the overlay; builds it if necessary."""
    return build_in(sources(series), variant, series, PLACE, lay)


@functools.cache
def perf(series):
    """The program perf of @series with its BPF programs, which Debian's package lacks; builds it if
    necessary."""
    objects = cache() / f"perf-{known_by(series, WITHOUT)}"
    objects.mkdir(parents=True, exist_ok=True)
    without = [f"NO_{part}=1" for part in WITHOUT.split()]
    make(sources(series) / "tools/perf", objects, "BUILD_BPF_SKEL=1", *without, "perf")
    return objects / "perf"
