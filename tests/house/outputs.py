#!/usr/bin/env python3
"""Keeps what the documents show true.

    python3 tests/house/outputs.py --vram build/fast/bin/vram            compare
    python3 tests/house/outputs.py --vram build/fast/bin/vram --update   write the shown outputs anew

A block whose output is shown stands after a marker and begins with the command:

    <!-- output: vram gpus A100 -->
    ```
    $ vram gpus A100
    ...
    ```

Commands in blocks marked sh that begin with 'vram' are run too, and must end with status 0 or 1. Every command runs in a
scratch folder that holds examples/, through bash, with the given vram on the path.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS = [("README.md", "README.zh-CN.md")]
MARKER = re.compile(r"<!-- output: (?P<command>.+?) -->\n(?P<fence>```\w*\n(?P<body>.*?)^```$)?", re.S | re.M)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.S | re.M)


class Runner:
    def __init__(self, vram, root):
        self.scratch = tempfile.TemporaryDirectory()
        folder = Path(self.scratch.name)
        (folder / "bin").mkdir()
        (folder / "work").mkdir()
        (folder / "bin" / "vram").symlink_to(Path(vram).resolve())
        if (Path(root) / "examples").is_dir():
            (folder / "work" / "examples").symlink_to((Path(root) / "examples").resolve())
        self.work = folder / "work"
        self.environment = {"PATH": f"{folder / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}", "HOME": str(folder),
                            "LANG": "C.UTF-8", "COLUMNS": "100", "NO_COLOR": "1"}

    def __call__(self, command):
        """(status, stdout and stderr as a terminal would show them)"""
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=self.work, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        return done.returncode, done.stdout.decode("utf-8", "replace")


def shown(command, output):
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    return "\n".join([f"$ {command}", "", *lines]) + "\n"


def update(document, run):
    """The document with every shown output made anew, and the problems met."""
    problems = []

    def renew(match):
        command = match["command"]
        if not match["fence"]:
            problems.append(f"no fenced block after the marker of '{command}'")
            return match[0]
        status, output = run(command)
        if not 0 <= status <= 2:
            problems.append(f"'{command}' ended with status {status}: {output.strip()[:300]}")
            return match[0]
        opening = match["fence"].split("\n", 1)[0]
        return f"<!-- output: {command} -->\n{opening}\n{shown(command, output)}```"

    return MARKER.sub(renew, document), problems


def compare(name, document, run):
    renewed, problems = update(document, run)
    problems = [f"{name}: {p}" for p in problems]
    if renewed != document:
        problems.append(f"{name} shows outputs that the command does not print (./dev docs writes them anew):")
        problems += [line.rstrip("\n") for line in difflib.unified_diff(
            document.splitlines(True), renewed.splitlines(True), "shown", "printed", n=1)]
    return problems


def without_comment(line):
    return re.sub(r"\s+#\s.*$", "", line).rstrip()


def shell_commands(document):
    """The commands of the sh blocks; a backslash at the end of a line joins it with the next."""
    for block in SHELL.findall(document):
        for line in block.replace("\\\n", " ").splitlines():
            if without_comment(line).strip() and not line.startswith("#"):
                yield re.sub(r"\s+", " ", without_comment(line)).strip()


def check_commands(name, document, run):
    problems = []
    for command in shell_commands(document):
        if command.startswith("vram "):
            status, output = run(command)
            if status not in (0, 1):
                problems.append(f"{name}: '{command}' ended with status {status}: {output.strip()[:300]}")
    return problems


def all_commands(document):
    """What a reader is shown to type, in order, without the choice of language."""
    found = [(m.start(), m["command"]) for m in MARKER.finditer(document)]
    position = 0
    for match in SHELL.finditer(document):
        for command in shell_commands(match[0]):
            position += 1
            found.append((match.start() + position * 1e-6, command))
    return [re.sub(r" --lang (zh|en)\b", "", c) for _, c in sorted(found)]


def compare_languages(english_name, english, other_name, other):
    first, second = all_commands(english), all_commands(other)
    if first == second:
        return []
    return [f"{english_name} and {other_name} show different commands:",
            *(line for line in difflib.unified_diff(first, second, english_name, other_name, n=0, lineterm=""))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vram", help="the built command; without it only the languages are compared")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    options = parser.parse_args()

    paths = [options.root / name for pair in PAIRS for name in pair] + sorted((options.root / "docs").glob("*.md"))
    problems = []
    if options.vram:
        run = Runner(options.vram, options.root)
        for path in paths:
            name, document = str(path.relative_to(options.root)), path.read_text(encoding="utf-8")
            if options.update:
                renewed, met = update(document, run)
                problems += [f"{name}: {p}" for p in met]
                if renewed != document:
                    path.write_text(renewed, encoding="utf-8")
                    print(f"{name}: written anew")
            else:
                problems += compare(name, document, run)
                problems += check_commands(name, document, run)
    elif options.update:
        parser.error("--update needs --vram")
    for english, other in PAIRS:
        problems += compare_languages(english, (options.root / english).read_text(encoding="utf-8"),
                                      other, (options.root / other).read_text(encoding="utf-8"))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
