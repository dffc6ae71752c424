#!/usr/bin/env python3
"""Holds every check of house.py and outputs.py to samples: the good one passes, each bad one is found."""

import stat
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import house    # noqa: E402
import outputs  # noqa: E402

TABLE = """<!-- rooms -->
| room | may include | holds |
|---|---|---|
| `low` | nothing | units |
| `side` | `low` | data |
| `middle` | all above but `side` | sums |
| `host` | `low` | files |
| `top` | all above | answers |
<!-- /rooms -->
"""

GOOD = {
    "docs/architecture.md": TABLE,
    "CMakeLists.txt": "foreach(room low side middle host top)\nendforeach()\n",
    "src/low/a.h": "#pragma once\n#include <string>\n",
    "src/side/a.h": '#include "low/a.h"\n',
    "src/middle/a.cc": '#include "middle/a.h"\n#include "low/a.h"\n',
    "src/host/a.cc": "#include <fstream>\n",
    "src/top/a.cc": '#include "side/a.h"\n#include "middle/a.h"\n',
    "data/rows.toml": '[[row]]\nid = "a"\nvalue = 1\nbasis = "exact"\nsource = "arithmetic"\n',
    **{f"src/{room}/{name}": "x\n" for room in ("low", "side", "middle", "host", "top")
       for name in ("README.md", "CMakeLists.txt", "a_test.cc")},
}


class HouseTest(unittest.TestCase):
    def problems(self, check, changes=None, removed=()):
        with tempfile.TemporaryDirectory() as folder:
            files = {k: v for k, v in {**GOOD, **(changes or {})}.items() if k not in removed}
            for name, content in files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
            return check(house.Tree(folder, files))

    def assert_found(self, words, check, changes=None, removed=()):
        found = self.problems(check, changes, removed)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_good_sample_passes_every_check(self):
        for check in house.CHECKS:
            self.assertEqual(self.problems(check), [], check.__name__)

    def test_include_of_a_room_below(self):
        self.assert_found("low may not include top", house.check_includes, {"src/low/a.h": '#include "top/a.h"\n'})

    def test_include_of_an_excluded_room_above(self):
        self.assert_found("middle may not include side", house.check_includes, {"src/middle/b.h": '# include "side/a.h"\n'})
        self.assert_found("host may not include middle", house.check_includes, {"src/host/b.h": '#include "middle/a.h"\n'})

    def test_include_from_a_folder_of_folders(self):
        self.assert_found("low may not include side", house.check_includes, {"src/low/x/y.cc": '#include "side/a.h"\n'})

    def test_relative_include(self):
        self.assert_found("not written from src/", house.check_includes, {"src/low/b.cc": '#include "a.h"\n'})

    def test_unknown_room(self):
        self.assert_found("not in docs", house.check_includes, {"src/attic/b.cc": "\n"})
        self.assert_found("not in docs", house.check_rooms, {"src/attic/b.cc": "\n"})

    def test_unreadable_tables(self):
        for bad in ("", TABLE.replace("all above but", "most of"), TABLE.replace("| `low` |\n", "").replace(
                "| `side` | `low` |", "| `side` | `top` |"), "<!-- rooms -->\n<!-- /rooms -->"):
            with self.assertRaises(ValueError):
                house.read_rooms(bad)

    def test_system_contact(self):
        self.assert_found("fstream", house.check_system_contact, {"src/middle/b.cc": "#include <fstream>\n"})
        self.assert_found("getenv", house.check_system_contact, {"src/middle/b.cc": 'auto* v = std::getenv("A");\n'})
        self.assertEqual(self.problems(house.check_system_contact, {"src/middle/b_test.cc": "#include <fstream>\n"}), [])

    def test_unfurnished_room(self):
        for name in ("README.md", "CMakeLists.txt"):
            self.assert_found(name, house.check_rooms, removed=[f"src/side/{name}"])
        self.assert_found("_test.cc", house.check_rooms, removed=["src/side/a_test.cc"])

    def test_build_order_differs(self):
        self.assert_found("order", house.check_rooms, {"CMakeLists.txt": "foreach(room side low middle host top)\n"})

    def test_words(self):
        for bad in ("see /wor" + "k/x", "../share" + "d/x", "TO" + "DO: later", "XX" + "X", "FIX" + "ME", "Place" + "holder text", "this is a place" + "holder",
                    "Lor" + "em ipsum", "from pypi" + ".org", "a helper" + " session"):
            self.assert_found("README.md:2", house.check_words, {"README.md": f"fine\n{bad}\n"})
        for fine in ("see /network/x", '<input placeholde' + 'r="4096">', "its filled place" + "holders", "placehold" + "er(field)", "build/fast/work/", "AXX" + "XB"):
            self.assertEqual(self.problems(house.check_words, {"README.md": fine}), [], fine)

    def test_lengths(self):
        self.assert_found("901 lines", house.check_lengths, {"src/low/b.cc": "\n" * 901})
        self.assertEqual(self.problems(house.check_lengths, {"src/low/b.cc": "\n" * 900, "data/b.md": "\n" * 2000}), [])
        self.assertEqual(len(self.problems(house.long_files, {"src/low/b.cc": "\n" * 700})), 1)

    @unittest.skipIf(house.tomllib is None, "needs Python 3.11")
    def test_data_rows(self):
        two = '[[row]]\nsource = "a"\nbasis = "measured"\n'
        self.assertEqual(self.problems(house.check_data_rows, {"data/b.toml": two + '[[row]]\nsource="b"\nbasis="exact"\n'}), [])
        self.assert_found("no source", house.check_data_rows, {"data/b.toml": two + '[[row]]\nbasis = "exact"\n'})
        self.assert_found("no basis", house.check_data_rows, {"data/b.toml": two + '[[row]]\nsource = "b"\nbasis = " "\n'})
        self.assert_found("guess", house.check_data_rows, {"data/b.toml": two + '[[row]]\nsource = "b"\nbasis = "guess"\n'})
        self.assert_found("a.b 0: no basis", house.check_data_rows, {"data/b.toml": '[a.b]\nvalue = 1\nsource = "x"\n'})
        self.assert_found("line 1", house.check_data_rows, {"data/b.toml": "[[row\n"})


SAMPLE = """# Sample
<!-- output: vram add 1 2 -->
```
$ vram add 1 2

3
```
```sh
./dev setup
vram add 2 \\
  2        # four
```
"""


class OutputsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        vram = Path(self.folder.name) / "adder"
        vram.write_text('#!/bin/sh\n[ "$1" = add ] || { echo "vram: bad verb" >&2; exit 2; }\n'
                        '[ "$2" != 9 ] || exit 3\necho $(($2 + $3))\n')
        vram.chmod(vram.stat().st_mode | stat.S_IXUSR)
        self.run_vram = outputs.Runner(vram, self.folder.name)
        self.addCleanup(self.run_vram.scratch.cleanup)

    def test_true_output_passes(self):
        self.assertEqual(outputs.compare("sample", SAMPLE, self.run_vram), [])
        self.assertEqual(outputs.check_commands("sample", SAMPLE, self.run_vram), [])

    def test_false_output_is_found_and_mended(self):
        stale = SAMPLE.replace("\n3\n", "\n4\n")
        self.assertIn("does not print", outputs.compare("sample", stale, self.run_vram)[0])
        self.assertEqual(outputs.update(stale, self.run_vram), (SAMPLE, []))

    def test_false_command_line_is_found(self):
        stale = SAMPLE.replace("$ vram add 1 2", "$ vram add 2 1")
        self.assertEqual(outputs.update(stale, self.run_vram), (SAMPLE, []))

    def test_an_error_may_be_shown(self):
        document = "<!-- output: vram sub -->\n```\n$ vram sub\n\nvram: bad verb\n```\n"
        self.assertEqual(outputs.compare("sample", document, self.run_vram), [])

    def test_failures_are_found(self):
        self.assertIn("status 3", outputs.compare("s", SAMPLE.replace("add 1 2", "add 9 2"), self.run_vram)[0])
        self.assertIn("status 2", outputs.check_commands("s", "```sh\nvram sub\n```\n", self.run_vram)[0])
        self.assertIn("no fenced block", outputs.compare("s", "<!-- output: vram add 1 2 -->\ntext\n", self.run_vram)[0])

    def test_two_languages(self):
        other = SAMPLE.replace("output: vram add 1 2", "output: vram add 1 2 --lang zh").replace("# four", "# 四")
        self.assertEqual(outputs.compare_languages("en", SAMPLE, "zh", other), [])
        self.assertNotEqual(outputs.compare_languages("en", SAMPLE, "zh", other.replace("./dev setup", "./dev test")), [])
        self.assertNotEqual(outputs.compare_languages("en", SAMPLE, "zh", SAMPLE[SAMPLE.index("```sh"):]), [])
        self.assertEqual(outputs.all_commands(SAMPLE), ["vram add 1 2", "./dev setup", "vram add 2 2"])


if __name__ == "__main__":
    unittest.main()
