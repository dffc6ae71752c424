#!/usr/bin/env python3
"""Runs `vram` against a hub on 127.0.0.1 and against caches on disk.

    run.py VRAM [--filter TEXT]

Each test is a function whose name begins with test_; it gets a World of its own: a home, a cache and a hub.
"""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import caches  # noqa: E402
import network  # noqa: E402
import weights  # noqa: E402
from world import Failure, World  # noqa: E402


def run_test(binary, name, function):
    with tempfile.TemporaryDirectory(prefix="vram_hub_") as folder:
        world = World(binary, folder)
        try:
            function(world)
            return name, None
        except Failure as problem:
            return name, str(problem)
        except Exception:  # a mistake in the test itself is reported like a failure
            return name, traceback.format_exc()
        finally:
            world.hub.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vram")
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.vram).resolve())
    tests = [(n, f) for module in (network, caches, weights) for n, f in vars(module).items()
             if n.startswith("test_") and options.filter in n]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for name, problem in pool.map(lambda t: run_test(binary, *t), tests):
            if problem:
                failed += 1
                print(f"FAILED {name}: {problem}")
    print(f"{len(tests) - failed} of {len(tests)} passed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
