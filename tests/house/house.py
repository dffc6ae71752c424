#!/usr/bin/env python3
"""The rules of the house, checked on the files of the repository: python3 tests/house/house.py [ROOT]

Each check takes a Tree and returns problems, one line each. test_house.py holds every check to a good and a bad sample.
"""

import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python before 3.11
    tomllib = None

ARCHITECTURE = "docs/architecture.md"
CODE = (".cc", ".h", ".def")
WARN_LINES, FAIL_LINES = 600, 900


class Tree:
    """The files that belong to the repository, by path relative to its root."""

    def __init__(self, root, files=None):
        self.root = Path(root)
        self.files = sorted(files if files is not None else self._listed())

    def _listed(self):
        listing = ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            out = subprocess.run(listing, check=True, capture_output=True).stdout.decode()
            return [f for f in out.split("\0") if f and (self.root / f).is_file()]
        except (OSError, subprocess.CalledProcessError):  # an unpacked archive
            found = []
            for folder, folders, files in os.walk(self.root):
                folders[:] = [f for f in folders if f not in ("build", ".git", ".cache", "__pycache__")]
                found += [os.path.relpath(os.path.join(folder, f), self.root) for f in files]
            return found

    def text(self, path):
        """The file's text, or None where it isn't text."""
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            return None

    def matching(self, *patterns):
        return [f for f in self.files if any(fnmatch.fnmatch(f, p) for p in patterns)]


def read_rooms(document):
    """The table between the rooms markers, as an ordered {room: set of rooms it may include}."""
    table = re.search(r"<!-- rooms -->(.*?)<!-- /rooms -->", document, re.S)
    if not table:
        raise ValueError("no table between <!-- rooms --> and <!-- /rooms -->")
    rooms = {}
    for line in table.group(1).splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        name = re.fullmatch(r"`(\w+)`", cells[0])
        if not name or len(cells) < 2:
            continue
        above, rule, named = set(rooms), cells[1], set(re.findall(r"`(\w+)`", cells[1]))
        if named - above:
            raise ValueError(f"{name[1]} names {', '.join(sorted(named - above))}, not above it")
        if rule == "nothing":
            allowed = set()
        elif rule == "all above":
            allowed = above
        elif rule.startswith("all above but "):
            allowed = above - named
        elif re.fullmatch(r"`\w+`(, `\w+`)*", rule):
            allowed = named
        else:
            raise ValueError(f"{name[1]}: can't read '{rule}'")
        rooms[name[1]] = allowed
    if not rooms:
        raise ValueError("the table of rooms is empty")
    return rooms


def rooms_of(tree):
    return read_rooms(tree.text(ARCHITECTURE) or "")


def check_includes(tree):
    """src/<room>/ includes only itself and what the table of rooms allows."""
    rooms, problems = rooms_of(tree), []
    for path in tree.matching("src/*"):
        if not path.endswith(CODE):
            continue
        room = path.split("/")[1]
        if room not in rooms:
            problems.append(f"{path}: the room '{room}' is not in {ARCHITECTURE}")
            continue
        for number, line in enumerate((tree.text(path) or "").splitlines(), 1):
            included = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not included:
                continue
            target = included[1].split("/")[0]
            if target == "vram" and "/" in included[1]:
                if room not in ("capi",):
                    problems.append(f"{path}:{number}: a public header inside a room")
            elif target not in rooms or "/" not in included[1]:
                problems.append(f"{path}:{number}: '{included[1]}' is not written from src/")
            elif target != room and target not in rooms[room]:
                problems.append(f"{path}:{number}: {room} may not include {target}")
    return problems


# What reaches past the process; rooms above host/ ask through Environment.
SYSTEM_HEADER = re.compile(r"\s*#\s*include\s*<(fcntl\.h|unistd\.h|dlfcn\.h|dirent\.h|spawn\.h|signal\.h|csignal|sys/[^>]+|"
                           r"pthread\.h|thread|filesystem|fstream)>")
SYSTEM_CALL = re.compile(r"\b(getenv|setenv|fopen|popen|dlopen|std::system|std::thread|std::async)\s*[({]")


def check_system_contact(tree):
    rooms, problems = rooms_of(tree), []
    exempt = {"host", "cli"}
    for path in tree.matching("src/*"):
        room = path.split("/")[1]
        if room in exempt or room not in rooms or not path.endswith(CODE) or path.endswith(("_test.cc", "_test.h")):
            continue
        for number, line in enumerate((tree.text(path) or "").splitlines(), 1):
            contact = SYSTEM_HEADER.match(line) or SYSTEM_CALL.search(line.split("//")[0])
            if contact:
                problems.append(f"{path}:{number}: {contact[1]} touches the operating system; use Environment")
    return problems


def check_rooms(tree):
    """The table, the folders and the build name the same rooms in the same order, and each is furnished."""
    rooms, problems = rooms_of(tree), []
    files = set(tree.files)
    for room in rooms:
        for needed in ("README.md", "CMakeLists.txt"):
            if f"src/{room}/{needed}" not in files:
                problems.append(f"src/{room}: no {needed}")
        if room != "cli" and not tree.matching(f"src/{room}/*_test.cc"):  # cli is tested as a process
            problems.append(f"src/{room}: no *_test.cc")
    for folder in sorted({f.split("/")[1] for f in tree.matching("src/*/*")} - set(rooms)):
        problems.append(f"src/{folder}: not in {ARCHITECTURE}")
    built = re.search(r"foreach\(room ([\w\s]+?)\)", tree.text("CMakeLists.txt") or "")
    if not built or built[1].split() != list(rooms):
        problems.append(f"CMakeLists.txt: the rooms or their order differ from {ARCHITECTURE}")
    return problems


# Written with classes of one letter so that this file passes its own check.
EVERYWHERE = [
    (r"(?<![\w.])/wor[k]/", "a path of one machine"),
    (r"\.\./share[d]\b", "a path outside the repository"),
    (r"\b(?:pypi\.or[g]|pythonhosted\.or[g]|npmjs\.(?:co[m]|or[g])|crates\.i[o]|rubygems\.or[g]|docker\.i[o]|"
     r"hub\.docker\.co[m]|ghcr\.i[o]|quay\.i[o]|anaconda\.or[g]|proxy\.golang\.or[g]|deb\.debian\.or[g])\b",
     "a package registry"),
    (r"\bhelper[ -]sessio[n]", "talk of how this was made"),
]
OUTSIDE_DATA = [
    (r"\b(?:TOD[O]|FIXM[E]|XX[X])\b", "unfinished work"),
    # The parts to fill in of a message may be called so; a thing that stands in for the real one may not.
    (r"(?i)\b(?:an?|is|as|only|just) placeholde[r]\b|"
     r"\bplaceholde[r]s? (?:text|values?|numbers?|figures?|data|results?|rows?|code|for|until)\b", "unfinished work"),
    (r"(?i)\blore[m]\b", "filler text"),
]


def check_words(tree):
    problems = []
    for path in tree.files:
        text = tree.text(path)
        if text is None:
            continue
        rules = EVERYWHERE if path.startswith("data/") else EVERYWHERE + OUTSIDE_DATA
        for pattern, why in rules:
            for found in re.finditer(pattern, text):
                line = text.count("\n", 0, found.start()) + 1
                problems.append(f"{path}:{line}: '{found[0]}' is {why}")
    return problems


MEASURED_FILES = ("*.cc", "*.h", "*.def", "*.py", "*.cmake", "*.md", "*CMakeLists.txt", "dev", "*.sh", "*.js", "*.css")


def line_counts(tree):
    for path in tree.matching(*MEASURED_FILES):
        if not path.startswith("data/") and not fnmatch.fnmatch(path, "tests/*/golden/*"):
            yield path, len((tree.text(path) or "").splitlines())


def check_lengths(tree):
    return [f"{path}: {lines} lines; split it by job (limit {FAIL_LINES})"
            for path, lines in line_counts(tree) if lines > FAIL_LINES]


def long_files(tree):
    return [f"{path}: {lines} lines" for path, lines in line_counts(tree) if WARN_LINES < lines <= FAIL_LINES]


def _row_groups(value, where):
    """Every list of rows inside a TOML value: arrays of tables, and tables that hold a 'value'."""
    if isinstance(value, dict):
        if "value" in value and not isinstance(value["value"], (dict, list)):
            yield where, [value], True
        for key, inner in value.items():
            yield from _row_groups(inner, f"{where}.{key}" if where else key)
    elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        yield where, value, any("value" in v for v in value)
        for index, inner in enumerate(value):
            for key, deeper in inner.items():
                yield from _row_groups(deeper, f"{where}[{index}].{key}")


def check_data_rows(tree):
    """Where one row of a table states a source or a basis, all do; constants always state both."""
    problems = []
    if tomllib is None:
        return problems
    for path in tree.matching("data/*.toml", "src/*.toml"):
        try:
            document = tomllib.loads(tree.text(path) or "")
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{path}: {error}")
            continue
        for where, rows, is_constant in _row_groups(document, ""):
            for key in ("source", "basis"):
                if key in document or not (is_constant or any(key in row for row in rows)):
                    continue
                for index, row in enumerate(rows):
                    label = row.get("id", index)
                    if not isinstance(row.get(key), str) or not row[key].strip():
                        problems.append(f"{path}: {where} {label}: no {key}")
                    elif key == "basis" and row[key] not in ("exact", "measured", "assumed"):
                        problems.append(f"{path}: {where} {label}: basis '{row[key]}' is not exact, measured or assumed")
    return problems


CHECKS = [check_includes, check_system_contact, check_rooms, check_words, check_lengths, check_data_rows]


def main(arguments):
    tree = Tree(arguments[0] if arguments else Path(__file__).resolve().parents[2])
    problems = []
    for check in CHECKS:
        found = check(tree)
        print(f"{check.__name__[6:].replace('_', ' ')}: {'ok' if not found else f'{len(found)} problems'}")
        problems += found
    for note in long_files(tree):
        print(f"long: {note}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
