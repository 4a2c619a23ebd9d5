#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks the mechanical part of CONTRIBUTING.md's rules: line width, and in prose banned words,
openings and spelling.

Prose is the text of Markdown files outside code, and the comments of source files. In C, Python,
shell, CMake and litmus tests a line is at most 100 columns wide, too; in Rust without its string
literals, which rustfmt cannot break. Rows of tables and lines with an URL may be wider. Prints one
line per violation, `FILE:LINE: error`, and exits with 1 if there are any.

Usage: prose.py [FILE...]    all tracked files by default
       prose.py --self-test  checks that each rule reports a seeded violation, and nothing else
"""

import io
import pathlib
import re
import subprocess
import sys
import tokenize
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
WIDTH = 100
TAB = 8

# A phrase, and what to write instead.
BANNED = {
    "anew": "again",
    "in vain": "failed, unsuccessful",
    "resp.": "or",
    "for ever": "indefinitely",
    "unless told": "by default",
    "unless given": "by default",
    "have it": "name the actor and the verb",
    "gives way": "yields, backs off",
    "newcomers first": "barging",
    "so many": "N",
    "see to it": "ensure",
    "comes to the lock": "arrives at the lock",
    "by luck": "by chance",
    "of a sudden": "suddenly",
}
BANNED_PATTERN = re.compile(
    r"(?<![\w-])(" + "|".join(map(re.escape, BANNED)) + r")(?![\w-])", re.IGNORECASE
)
# A definition opens with a noun or a verb. A question may open with any of these.
RIDDLE = re.compile(r"(?:Who|Whose|What|Where|Which|Behind which|Behind whom)\b(?![^.]*\?)")

LINE_COMMENTS = {".rs": "//", ".py": "#", ".sh": "#", ".cmake": "#", ".toml": "#", ".def": "//"}
C_LIKE = {".c", ".h", ".hpp", ".cpp", ".def"}
SCRIPTS = ("dev", "CMakeLists.txt")
# Comments and characters are matched too, since they may contain a quote.
RUST_LITERAL = re.compile(
    r"""//[^\n]*|'(?:[^'\\]|\\[^\n]+?)'|(?P<string>r(?P<hashes>#*)"(?s:.*?)"(?P=hashes)|"(?s:\\.|[^"\\])*")"""
)
# Written by commands, or quoted from elsewhere.
SKIPPED = ("results/", "docs/fidelity.md", "tests/prose.py", "LICENSE", "docs/img/", "Cargo.lock")
GENERATED = re.compile(r"<!-- written by .*?<!-- end -->", re.DOTALL)


class Block(NamedTuple):
    """A comment or a paragraph."""

    line: int
    text: str


def blanked(match):
    return re.sub(r"[^\n]", " ", match.group())


def markdown_blocks(text):
    text = GENERATED.sub(blanked, text)
    text = re.sub(r"(?ms)^ *```.*?^ *```", blanked, text)
    return [
        Block(text.count("\n", 0, match.start()) + 1, re.sub(r"`[^`\n]*`", blanked, match.group()))
        for match in re.finditer(r"(?:^(?!    )(?=.*\S).+\n?)+", text, re.MULTILINE)
    ]


def c_blocks(text):
    for match in re.finditer(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", text, re.DOTALL):
        if not match.group().startswith('"'):
            words = re.sub(r"(?m)^\s*\*(?!/)", "", match.group()[2:].removesuffix("*/"))
            yield Block(text.count("\n", 0, match.start()) + 1, words)


def litmus_blocks(text):
    for match in re.finditer(r"\(\*(.*?)\*\)", text, re.DOTALL):
        words = re.sub(r"(?m)^ \*", "", match.group(1))
        yield Block(text.count("\n", 0, match.start()) + 1, words)


def rust_blocks(text):
    for match in re.finditer(
        r"(?:^[ \t]*//[/!]?(?:[^\n]*)\n)+|(?<=[;,{}] )//[^\n]*", text, re.MULTILINE
    ):
        yield Block(
            text.count("\n", 0, match.start()) + 1, re.sub(r"(?m)^\s*//[/!]?", "", match.group())
        )


def python_blocks(text):
    strings = (tokenize.STRING,)
    previous = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Block(token.start[0], token.string.lstrip("#"))
        elif (
            token.type in strings
            and token.string.startswith('"""')
            and previous in (tokenize.INDENT, tokenize.NEWLINE, None, tokenize.NL)
        ):
            yield Block(token.start[0], token.string.strip('"'))
        if token.type != tokenize.COMMENT:
            previous = token.type


def hash_blocks(text):
    for match in re.finditer(r"(?:^[ \t]*#(?!!)[^\n]*\n?)+", text, re.MULTILINE):
        yield Block(text.count("\n", 0, match.start()) + 1, re.sub(r"(?m)^\s*#", "", match.group()))


def blocks_of(path, text):
    if path.suffix == ".md":
        return markdown_blocks(text)
    if path.suffix in C_LIKE:
        return c_blocks(text)
    if path.suffix == ".litmus":
        return litmus_blocks(text)
    if path.suffix == ".rs":
        return rust_blocks(text)
    if path.suffix == ".py":
        return python_blocks(text)
    if path.suffix in LINE_COMMENTS or path.name in SCRIPTS or path.name.endswith(".txt"):
        return hash_blocks(text)
    return []


def columns(line):
    return len(line.expandtabs(TAB))


def is_table(line):
    """Rows of tables, and lines whose length a link makes."""
    return line.lstrip().startswith("|") or "](" in line or "://" in line


def is_code(path):
    return (
        path.suffix in C_LIKE | {".litmus", ".rs", ".py", ".sh", ".cmake"} or path.name in SCRIPTS
    )


def without_literals(text):
    """Rust's @text without the characters of string literals; lines stay."""
    return RUST_LITERAL.sub(
        lambda match: re.sub(r"[^\n]", "", match[0]) if match["string"] else match[0], text
    )


def wide_code(path, text):
    narrowed = without_literals(text) if path.suffix == ".rs" else text
    for number, (line, rest) in enumerate(zip(text.split("\n"), narrowed.split("\n")), 1):
        if columns(rest) > WIDTH and not is_table(line):
            yield number, f"{columns(line)} columns, {WIDTH} are allowed"


def wide_lines(path, text, blocks):
    """Markdown's lines, and lines of other files that are in a comment."""
    if path.suffix == ".md":
        text = GENERATED.sub(blanked, text)
    lines = text.split("\n")
    numbers = {
        number
        for block in blocks
        for number in range(block.line, block.line + block.text.rstrip().count("\n") + 1)
    }
    for number in sorted(numbers):
        line = lines[number - 1]
        if columns(line) > WIDTH and not is_table(line):
            yield number, f"{columns(line)} columns, {WIDTH} are allowed"


def words_of(block):
    for match in BANNED_PATTERN.finditer(block.text):
        line = block.line + block.text.count("\n", 0, match.start())
        yield line, f"'{match.group()}': write {BANNED[match.group().lower()]}"
    opening = RIDDLE.match(re.sub(r"[\s*|-]+", " ", block.text).strip())
    if opening:
        yield block.line, f"a definition opens with '{opening.group()}'"


def violations(path, text):
    """(Line, what is wrong), in the order of lines."""
    blocks = list(blocks_of(path, text))
    found = list(wide_lines(path, text, blocks))
    if is_code(path):
        found += wide_code(path, text)
    for block in blocks:
        found += words_of(block)
    return sorted(set(found))


def misspelt(files):
    run = subprocess.run(
        ["codespell", "--ignore-words", ROOT / "tests/prose_words.txt", *files],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
    )
    return run.stdout.splitlines()


def tracked():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE
    ).stdout
    return [name for name in listed.splitlines() if not name.startswith(SKIPPED)]


def is_prose(name):
    path = ROOT / name
    return path.is_file() and (is_code(path) or any(blocks_of(path, text_of(path))))


def text_of(path):
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""


# A file's name, its text, and what must be reported of it; "" stands for nothing.
SEEDED = [
    ("a.c", "/* Adds it anew. */\n", "'anew'"),
    ("a.c", "/* Who finds it held waits. */\n", "opens with 'Who'"),
    ("a.c", "/*\n * Which CPUs? All.\n */\n", ""),
    ("a.c", f"/* {'x ' * 60}*/\n", "columns"),
    ("a.c", 'char *text = "/* anew */";\n', ""),
    ("a.c", f"f({'x, ' * 40}y);\n", "columns"),
    ("a.sh", f"f {'x ' * 60}\n", "columns"),
    ("CMakeLists.txt", f"f({'x ' * 60})\n", "columns"),
    ("a.py", f"f('{'x ' * 60}')\n", "columns"),
    ("a.rs", f"f({'x, ' * 40}y);\n", "columns"),
    ("a.rs", f"f('\"', \"{'x ' * 60}\");\n", ""),
    ("a.rs", f'f("a\n{"x " * 60}\n", {"y, " * 40}z);\n', "columns"),
    ("a.rs", f'f(r#"a"\n{"x " * 60}\n"#);\n', ""),
    ("a.rs", "/// Spins in vain.\nfn f() {}\n", "'in vain'"),
    ("a.py", "# Waits for ever.\n", "'for ever'"),
    ("a.py", 'def f():\n    """What it returns."""\n', "opens with 'What'"),
    ("a.sh", "# 8, unless told.\n", "'unless told'"),
    ("a.litmus", "C a\n\n(*\n * Added anew.\n *)\n", "'anew'"),
    ("a.md", "The result, resp. the error.\n", "'resp.'"),
    ("a.md", "```\nanew\n```\n`anew`\n", ""),
    ("a.md", f"| {'x ' * 60}|\n", ""),
    ("a.md", f"`name` {'x ' * 60}\n", "columns"),
]


def self_test():
    failed = 0
    for name, text, expected in SEEDED:
        found = "; ".join(what for _, what in violations(pathlib.Path(name), text))
        if (expected not in found) or (not expected and found):
            print(f"{text!r} in {name}: expected '{expected}', found '{found}'", file=sys.stderr)
            failed += 1
    return failed > 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    names = [name for name in sys.argv[1:] or tracked() if is_prose(name)]
    wrong = [
        f"{name}:{line}: {what}"
        for name in names
        for line, what in violations(ROOT / name, text_of(ROOT / name))
    ]
    wrong += misspelt(names)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
