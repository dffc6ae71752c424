#!/usr/bin/env python3
"""Time and memory of the whole process, from fork to exit: python3 bench/process.py build/release/bin/vram

Linux counts what Python itself held before it became the command, so that no figure is below about 14 MiB.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import weight_files

QUESTIONS = [  # arguments, limit of the median in ms, limit of the resident peak in MiB
    (["fit", "meta-llama/Llama-3.1-70B", "--on", "8xH100"], 30, 30),
    (["train", "meta-llama/Llama-3.1-70B", "--on", "8x8xH100", "--stack", "megatron", "--tp", "8", "--pp", "4"], 30, 30),
    (["serve", "meta-llama/Llama-3.1-70B", "--on", "4xH100"], 30, 30),
    (["models"], 30, 30),
    (["gpus"], 30, 30),
]
# The same of weight files, made before: 91 thousand tensors in 163 files, and one file of 1,086 tensors.
FILES = [
    (["models", "show", "deepseek-v3"], 50, 60),
    (["models", "show", "deepseek-v3.1.gguf"], 15, 60),
]
RUNS = 30


def run(command, folder):
    start = time.perf_counter()
    child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return (time.perf_counter() - start) * 1e3, usage.ru_maxrss / 1024, child.returncode


def main(vram):
    missed = 0
    vram = os.path.abspath(vram)
    folder = tempfile.TemporaryDirectory()
    weight_files.make(vram, folder.name)
    for arguments, limit_ms, limit_mib in QUESTIONS + FILES:
        runs = [run([vram, *arguments], folder.name) for _ in range(RUNS)]
        milliseconds, resident = statistics.median(r[0] for r in runs), max(r[1] for r in runs)
        good = milliseconds <= limit_ms and resident <= limit_mib and runs[0][2] in (0, 1)
        missed += not good
        print(f"{'ok  ' if good else 'MISS'} {milliseconds:6.1f} ms  {resident:5.1f} MiB  status {runs[0][2]}  vram {' '.join(arguments)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
