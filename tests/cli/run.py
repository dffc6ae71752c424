#!/usr/bin/env python3
"""Runs `vram` as a process and checks what it prints and how it ends.

    run.py VRAM [--filter TEXT] [--update]

The cases are data (cases.py); a new one is one entry there. --update writes the golden files anew.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import pty
import re
import select
import shlex
import subprocess
import sys
import tempfile
import unicodedata

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
GOLDEN = SOURCE / "tests" / "golden"
sys.path.insert(0, str(HERE))
import cases  # noqa: E402
import claims  # noqa: E402
import worked  # noqa: E402

TIMEOUT = 60


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


def width(line):
    """Columns of a line in a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def no_duplicates(pairs):
    keys = [k for k, _ in pairs]
    expect(len(keys) == len(set(keys)), f"duplicate keys in JSON: {keys}")
    return dict(pairs)


def parse_json(text):
    def refuse(name):
        raise Failure(f"{name} is no JSON")

    try:
        return json.loads(text, object_pairs_hook=no_duplicates, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise Failure(f"no valid JSON ({error}):\n{text[:400]}") from error


class Vram:
    def __init__(self, binary):
        self.binary = binary

    def environment(self, extra):
        env = {"PATH": os.environ.get("PATH", ""), "VRAM_NVML_LIBRARY": "/nonexistent/libnvidia-ml.so"}
        # Sanitizer builds find their options here.
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        env.update(extra or {})
        return env

    def run(self, args, cwd, env=None):
        done = subprocess.run([self.binary, *args], cwd=cwd, env=self.environment(env), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=TIMEOUT, check=False)
        try:
            return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Failure(f"output is no UTF-8: {error}") from error

    def run_in_terminal(self, args, cwd, env=None, columns=100):
        """Standard output is a terminal."""
        leader, follower = pty.openpty()
        import fcntl
        import struct
        import termios
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        process = subprocess.Popen([self.binary, *args], cwd=cwd, env=self.environment(env), stdin=subprocess.DEVNULL,
                                   stdout=follower, stderr=subprocess.PIPE)
        os.close(follower)
        out = b""
        while True:
            ready, _, _ = select.select([leader], [], [], TIMEOUT)
            expect(ready, "no output from the terminal")
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            out += piece
        os.close(leader)
        process.communicate(timeout=TIMEOUT)
        return process.returncode, out.decode("utf-8").replace("\r\n", "\n")


def check_form(case, args, status, out, err):
    """What holds for every run, whatever was asked."""
    expect(status in (0, 1, 2, 3), f"exit status {status}\n{err[:2000]}")
    expect("internal error" not in err, err)
    if status >= 2:
        expect(err.startswith("vram: ") and err.count("\n") == 1 and err.endswith("\n"), f"no single error line: {err!r}")
        if "--json" in args:
            expect(parse_json(out)["error"]["status"] == status, f"the error in JSON lacks its status: {out}")
        else:
            expect(out == "", f"output beside an error: {out[:400]}")
    else:
        expect(err == "", f"an answer with an error line: {err}")
        expect(out.endswith("\n"), "the last line does not end")
        if "--json" in args:
            parse_json(out)
        elif not case.get("wide"):
            for line in out.splitlines():
                # Words without spaces are not broken, so that they can be copied (addresses, paths).
                fits = width(line) <= 100 or max(map(width, line.split())) > 60
                expect(fits, f"{width(line)} columns: {line}")
                expect(line == line.rstrip(), f"spaces at the end: {line!r}")
    expect("--color always" in " ".join(args) or "\033" not in out, "escape sequences without a terminal")


def same(a, b, where="$"):
    """Equal up to the last digits of doubles; None or where they differ."""
    if isinstance(a, float) or isinstance(b, float):
        ok = isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1e-300)
        return None if ok else f"{where}: {a!r} != {b!r}"
    if type(a) is not type(b):
        return f"{where}: {a!r} != {b!r}"
    if isinstance(a, dict):
        if list(a) != list(b):
            return f"{where}: keys {list(a)} != {list(b)}"
        return next((d for k in a if (d := same(a[k], b[k], f"{where}.{k}"))), None)
    if isinstance(a, list):
        if len(a) != len(b):
            return f"{where}: {len(a)} != {len(b)} items"
        return next((d for i, (x, y) in enumerate(zip(a, b)) if (d := same(x, y, f"{where}[{i}]"))), None)
    return None if a == b else f"{where}: {a!r} != {b!r}"


def at(document, path):
    for step in re.findall(r"[^.\[\]]+", path):
        expect(step.lstrip("-").isdigit() or step in document, f"no {path} in the answer")
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def run_case(vram, case, update):
    args = case["args"] if isinstance(case["args"], list) else shlex.split(case["args"])
    with tempfile.TemporaryDirectory() as folder:
        for name, content in case.get("files", {}).items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        status, out, err = vram.run(args, folder, case.get("env"))
        check_form(case, args, status, out, err)
        expect(status == case.get("status", 0), f"exit status {status}, not {case.get('status', 0)}\n{out[:2000]}{err}")
        if "err" in case:
            expect(err == f"vram: {case['err']}\n", f"\n  is       {err}  expected vram: {case['err']}")
        for piece in case.get("err_has", []):
            expect(piece in err, f"'{piece}' is not in: {err}")
        for piece in case.get("out", []):
            expect(piece in out, f"'{piece}' is not in:\n{out}")
        for piece in case.get("out_lacks", []):
            expect(piece not in out, f"'{piece}' is in:\n{out}")
        for pattern in case.get("match", []):
            expect(re.search(pattern, out, re.M), f"nothing matches '{pattern}' in:\n{out}")
        for path, value in case.get("json", {}).items():
            difference = same(value, at(parse_json(out), path), path)
            expect(difference is None, difference)
        for path, (value, tolerance) in case.get("near", {}).items():
            found = at(parse_json(out), path)
            expect(isinstance(found, (int, float)) and abs(found - value) <= tolerance * abs(value), f"{path}: {found}, not {value}")
        for name, content in case.get("leaves", {}).items():
            path = pathlib.Path(folder, name)
            if content is None:
                expect(not path.exists(), f"{name} was written")
            else:
                expect(path.exists(), f"{name} was not written")
                for piece in content:
                    expect(piece in path.read_text(), f"'{piece}' is not in {name}:\n{path.read_text()}")
        if case.get("leaves") is not None or status >= 2:
            allowed = set(case.get("files", {})) | {n for n, c in case.get("leaves", {}).items() if c is not None}
            found = {str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file()}
            expect(found <= allowed, f"left behind: {sorted(found - allowed)}")
        if "then" in case:   # a second command in the same folder, with the same answer
            second = shlex.split(case["then"])
            again = vram.run(second, folder, case.get("env"))
            expect(again[:2] == (status, out), f"'{case['then']}' answers otherwise:\n{again[1][:1000]}{again[2]}\ninstead of\n{out[:1000]}")
        if "golden" in case:
            path = GOLDEN / case["golden"]
            answer = parse_json(out)
            if update:
                path.write_text(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
            expect(path.exists(), f"{path.name} is missing; run with --update")
            difference = same(json.loads(path.read_text()), answer)
            expect(difference is None, f"{path.name} differs: {difference}")


# --- what every verb must do ---------------------------------------------------------------------------------------


def in_folder(check):
    @functools.wraps(check)
    def run(vram, command):
        with tempfile.TemporaryDirectory() as folder:
            check(vram, shlex.split(command), folder)
    return run


@in_folder
def verb_writes_json(vram, args, folder):
    status, out, err = vram.run([*args, "--json"], folder)
    check_form({}, [*args, "--json"], status, out, err)
    expect(status in (0, 1), f"exit status {status}: {err}")
    english = parse_json(out)

    def keys(document, where="$"):
        if isinstance(document, dict):
            for key, value in document.items():
                # Keys that are data (fields of configs, names) stand below these.
                expect(re.fullmatch(r"[a-z0-9][a-z0-9_]*", key), f"{where}.{key} is not snake_case")
                keys(value, f"{where}.{key}")
        elif isinstance(document, list):
            for value in document:
                keys(value, where)
    keys(english)
    # Language does not change what programs read.
    _, chinese, _ = vram.run([*args, "--json", "--lang", "zh"], folder)
    expect(set(parse_json(chinese)) == set(english), "the keys of the answer depend on the language")


@in_folder
def verb_speaks_chinese(vram, args, folder):
    _, english, _ = vram.run(args, folder)
    status, out, err = vram.run([*args, "--lang", "zh"], folder)
    check_form({}, args, status, out, err)
    expect(re.search(r"[\u4e00-\u9fff]", out), f"no Chinese in:\n{out}")
    for env in ({"LC_ALL": "zh_CN.UTF-8"}, {"LC_MESSAGES": "zh_TW.UTF-8", "LANG": "en_US.UTF-8"}, {"LANG": "zh_CN.UTF-8"}):
        expect(vram.run(args, folder, env)[1] == out, f"{env} does not give Chinese")
    expect(vram.run(args, folder, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"})[1] == english, "LC_ALL does not come first")


@in_folder
def verb_knows_colour(vram, args, folder):
    plain = vram.run(args, folder)[1]
    coloured = vram.run_in_terminal(args, folder, {"TERM": "xterm-256color"})[1]
    expect("\033[" in coloured, "no colour on a terminal")
    expect(re.sub(r"\033\[[0-9;]*m", "", coloured) == plain, "colour changes the text")
    for env in ({"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}):
        expect("\033" not in vram.run_in_terminal(args, folder, env)[1], f"colour in spite of {env}")
    expect("\033" not in vram.run_in_terminal([*args, "--color", "never"], folder, {"TERM": "xterm"})[1], "--color never")
    expect("\033[" in vram.run([*args, "--color", "always"], folder, {"NO_COLOR": "1"})[1], "--color always")


@in_folder
def verb_fits_a_narrow_terminal(vram, args, folder):
    for columns in (80,):
        _, out = vram.run_in_terminal([*args, "--color", "never"], folder, {"TERM": "xterm"}, columns)
        for line in out.splitlines():
            # Words without spaces are not broken, so that they can be copied.
            expect(width(line) <= columns or max(map(width, line.split())) > columns - 40, f"{width(line)} columns: {line}")


@in_folder
def verb_writes_ascii(vram, args, folder):
    for extra, env in ((["--ascii"], {}), ([], {"LC_ALL": "en_US.ISO-8859-1"})):
        out = vram.run([*args, *extra], folder, env)[1]
        expect(out.isascii(), "not ASCII: " + "".join(c for c in out if not c.isascii())[:80])


@in_folder
def verb_bears_a_closed_pipe(vram, args, folder):
    # The reader has left before the first byte.
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen([vram.binary, *args], cwd=folder, env=vram.environment(None), stdin=subprocess.DEVNULL,
                               stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    _, err = process.communicate(timeout=TIMEOUT)
    expect(err == b"", f"a closed pipe is told: {err!r}")
    expect(process.returncode in (0, 1), f"exit status {process.returncode}")


@in_folder
def verb_saves_its_job(vram, args, folder):
    first = vram.run([*args, "--json"], folder)
    for name in ("job.yaml", "job.json"):
        saved = vram.run([*args, "--json", "--save", name], folder)
        expect(saved == first, f"--save changes the answer\n{saved[2]}")
        again = vram.run([args[0], "--job", name, "--json"], folder)
        expect(again == first, f"--job {name} answers otherwise: {again[2] or same(parse_json(first[1]), parse_json(again[1]))}")
    expect(sorted(os.listdir(folder)) == ["job.json", "job.yaml"], f"left behind: {os.listdir(folder)}")


@in_folder
def verb_has_help(vram, args, folder):
    for lang in ("en", "zh"):
        status, out, err = vram.run(["help", args[0], "--lang", lang], folder)
        check_form({}, args, status, out, err)
        expect(f"vram {args[0]}" in out and "--json" in out, out)
        expect(vram.run([args[0], "--help", "--lang", lang], folder)[1] == out, "--help differs from help")
        expect(vram.run(["--lang", lang, args[0], "-h"], folder)[1] == out, "-h differs from help")


@in_folder
def verb_refuses_unknown_options(vram, args, folder):
    status, out, err = vram.run([*args, "--jsson"], folder)
    check_form({}, [], status, out, err)
    expect(status == 2 and "--json" in err, err)


VERB_CHECKS = [verb_writes_json, verb_speaks_chinese, verb_knows_colour, verb_fits_a_narrow_terminal, verb_writes_ascii,
               verb_bears_a_closed_pipe, verb_has_help, verb_refuses_unknown_options]


def verbs_are_all_here(vram):
    """Every verb that the command has is in cases.VERBS."""
    out = vram.run([], HERE)[1]
    table = out[out.index("\nVerbs\n"):]
    known = set(re.findall(r"^  (\w+)  ", table, re.M))
    expect(known == {c.split()[0] for c, _ in cases.VERBS}, f"verbs {sorted(known)} and cases.VERBS differ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vram")
    parser.add_argument("--filter", default="")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    vram = Vram(os.path.abspath(options.vram))

    work = [("verbs: all here", lambda: verbs_are_all_here(vram))]
    names = set()
    for case in cases.CASES + worked.CASES + claims.CASES:
        expect(case["name"] not in names, f"two cases are named {case['name']}")
        names.add(case["name"])
        work.append((case["name"], lambda c=case: run_case(vram, c, options.update)))
    for command, has_job in cases.VERBS:
        for check in VERB_CHECKS + ([verb_saves_its_job] if has_job else []):
            work.append((f"{command.split()[0]}: {check.__name__}", lambda f=check, c=command: f(vram, c)))
    work = [w for w in work if options.filter in w[0]]

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        for (name, _), done in zip(work, pool.map(lambda w: attempt(w[1]), work)):
            if done is not None:
                failed += 1
                print(f"FAILED {name}: {done}\n")
    print(f"{len(work) - failed} of {len(work)} passed")
    return 1 if failed or not work else 0


def attempt(check):
    try:
        check()
    except Failure as failure:
        return str(failure)
    except subprocess.TimeoutExpired as expired:
        return f"no end after {expired.timeout} s"
    return None


if __name__ == "__main__":
    sys.exit(main())
