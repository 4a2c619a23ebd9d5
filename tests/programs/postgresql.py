# SPDX-License-Identifier: MIT OR Apache-2.0
"""PostgreSQL in a directory: created natively, served under a lock, loaded by pgbench, and examined
after its end.

Its processes share locks of their own, which must keep working beside ours.
"""

import glob
import os
import pwd
import re
import tempfile
import time

from client import Wrong, call

CLIENTS = 8
THREADS = 4

made = None  # a directory with a new database, kept for all runs


def program(name):
    """Debian keeps the server's programs out of PATH."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return found[-1] if found else name


def user():
    """The user of the server, which refuses to run as root."""
    return "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name


def as_user(*command):
    """@command as that user, with a preload library that may be in a folder that only root can
    read."""
    if os.getuid():
        return list(command)
    identity = ["--reuid", user(), "--regid", user(), "--clear-groups"]
    return [
        "setpriv",
        *identity,
        "--inh-caps",
        "+dac_override",
        "--ambient-caps",
        "+dac_override",
        *command,
    ]


def data(directory):
    return os.path.join(directory, "data")


def give(directory):
    """Gives @directory to the server's user."""
    if os.getuid() == 0:
        call("chown", "-R", f"{user()}:", directory)


def prepare(directory):
    """Creates a database in @directory."""
    global made
    if not made:
        made = tempfile.TemporaryDirectory(prefix="poundlock-", dir=os.path.dirname(directory))
        give(made.name)
        call(
            *as_user(
                program("initdb"),
                "--pgdata",
                data(made.name),
                "--username=tester",
                "--auth=trust",
                "--data-checksums",
                "--no-sync",
                "--locale=C",
                "--wal-segsize=1",
            )
        )
    call("cp", "-a", data(made.name), data(directory))
    os.symlink(".s.PGSQL.5432", f"{directory}/socket")
    give(directory)


def command(directory):
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": directory,
        "fsync": "off",
        "shared_buffers": "1MB",
        "autovacuum_naptime": "1",
        "min_wal_size": "2MB",
        "max_wal_size": "8MB",
    }
    return as_user(
        program("postgres"),
        "-D",
        data(directory),
        *[f"--{name}={value}" for name, value in settings.items()],
    )


def at(path):
    return ["--host", os.path.dirname(path), "--username=tester"]


def query(path, text):
    return call(
        "psql",
        *at(path),
        "--no-psqlrc",
        "--tuples-only",
        "--no-align",
        "--command",
        text,
        "postgres",
    )


def wait_until_ready(path):
    """The server listens before it accepts queries."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return query(path, "select 1")
        except Wrong:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def load(path, transactions):
    """Transfers that keep each table's sum, all on one branch, where they contend."""
    each = transactions // CLIENTS
    wait_until_ready(path)
    call("pgbench", *at(path), "--initialize", "--scale=1", "postgres")
    report = call(
        "pgbench",
        *at(path),
        f"--client={CLIENTS}",
        f"--jobs={THREADS}",
        f"--transactions={each}",
        "postgres",
    )
    made, due = CLIENTS * each, f"{CLIENTS * each}/{CLIENTS * each}"
    if not re.search(rf"actually processed: {due}$", report, re.MULTILINE):
        raise Wrong(f"pgbench did not make all {due} transactions")
    sums = " , ".join(
        f"(select sum({what}) from pgbench_{table})"
        for what, table in (
            ("abalance", "accounts"),
            ("bbalance", "branches"),
            ("tbalance", "tellers"),
            ("delta", "history"),
        )
    )
    found = query(path, f"select (select count(*) from pgbench_history), {sums}").split("|")
    if int(found[0]) != made or len(set(found[1:])) != 1:
        raise Wrong(
            f"{found[0]} transfers and sums of {', '.join(found[1:])} after {made} transactions"
        )


def examine(directory):
    """Checks the checksums of all pages on disk."""
    call(*as_user(program("pg_checksums"), "--check", "--pgdata", data(directory)))
