# SPDX-License-Identifier: MIT OR Apache-2.0
"""MariaDB in a directory: created natively, served under a lock, loaded by sysbench, and examined
after its end."""

import glob
import os
import re
import tempfile

from client import Wrong, call

ROWS = 1000
THREADS = 16
# Small files, no network, and no account but the current user's.
OPTIONS = [
    "--no-defaults",
    "--innodb-log-file-size=4M",
    "--innodb-data-file-path=ibdata1:4M:autoextend",
]

made = None  # a directory with a new database, kept for all runs


def data(directory):
    return os.path.join(directory, "data")


def prepare(directory):
    """Creates a database in @directory."""
    global made
    if not made:
        made = tempfile.TemporaryDirectory(prefix="poundlock-", dir=os.path.dirname(directory))
        call(
            "mariadb-install-db",
            *OPTIONS,
            "--user=root",
            f"--datadir={data(made.name)}",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        )
    call("cp", "-a", data(made.name), data(directory))


def command(directory):
    return [
        "mariadbd",
        *OPTIONS,
        "--user=root",
        f"--datadir={data(directory)}",
        "--skip-networking",
        f"--socket={directory}/socket",
        f"--pid-file={directory}/pid",
        "--innodb-buffer-pool-size=8M",
    ]


def query(path, text):
    return call(
        "mariadb",
        "--no-defaults",
        f"--socket={path}",
        "--user=root",
        "--batch",
        "--skip-column-names",
        "-e",
        text,
    )


def load(path, events):
    """Transactions of many threads on few rows, which keep the number of rows."""
    sysbench = [
        "sysbench",
        "oltp_read_write",
        f"--mysql-socket={path}",
        "--mysql-user=root",
        f"--table-size={ROWS}",
    ]
    query(path, "create database sbtest")
    call(*sysbench, "prepare")
    report = call(*sysbench, f"--threads={THREADS}", f"--events={events}", "--time=0", "run")
    if not re.search(rf"total number of events: +{events}\n", report):
        raise Wrong("sysbench did not make all transactions")
    said = query(path, "check table sbtest.sbtest1 extended").split("\t")
    if [word.strip() for word in said[-2:]] != ["status", "OK"]:
        raise Wrong(f"the table is damaged: {said}")
    rows = query(path, "select count(*) from sbtest.sbtest1").strip()
    if rows != str(ROWS):
        raise Wrong(f"{rows} rows instead of {ROWS}")


def examine(directory):
    """Checks the checksums of all pages on disk."""
    files = glob.glob(f"{data(directory)}/sbtest/*.ibd")
    if not files:
        raise Wrong("there is no table on disk")
    for file in files:
        call("innochecksum", file)
