# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the clients of servers."""

import subprocess


class Wrong(Exception):
    """The server's answer was not the expected one."""


def call(*command):
    """The output of a program that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        text = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Wrong(f"{command[0]} ended with {done.returncode}: {text[-1] if text else ''}")
    return done.stdout.strip()
