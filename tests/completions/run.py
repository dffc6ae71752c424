#!/usr/bin/env python3
"""Asks shells what they offer behind a part of a `vram` command line, and looks at the manual page.

    run.py VRAM

bash must be there; zsh and fish are asked where they are installed, groff looks at the page where it is.
"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

# Line so far -> what must and what must not be offered.
CASES = [
    ("vram ", ["fit", "train", "serve", "models", "gpus", "help"], []),
    ("vram tr", ["train"], ["fit"]),
    ("vram help s", ["serve"], ["fit"]),
    ("vram train --prec", ["--precision"], ["--kv-dtype"]),
    ("vram serve --kv-d", ["--kv-dtype"], []),
    ("vram fit --pre", [], ["--precision=x"]),
    ("vram train --stack ", ["megatron", "fsdp", "deepspeed"], ["fit"]),
    ("vram train --stack m", ["megatron"], ["fsdp"]),
    ("vram train --micro_batch ", [], ["fit", "--on"]),
    ("vram train --tex", ["--textbook"], []),
    ("vram train --textbook --tas", ["--task"], []),
    ("vram fit --on 8xH1", ["8xH100"], ["8xA100-80G", "H100"]),
    ("vram fit --on 4xRTX4", ["4xRTX4090"], []),
    ("vram fit --on 2x8xH1", ["2x8xH100"], []),
    ("vram fit meta-llama/Llama-3.1-7", ["meta-llama/Llama-3.1-70B"], []),
    ("vram models show Qwen/Qwen3-8", ["Qwen/Qwen3-8B"], []),
    ("vram gpus H1", ["H100"], []),
    ("vram gpus --lang ", ["en", "zh"], []),
    ("vram completions ", ["bash", "zsh", "fish"], []),
    ("vram fit ./my-co", ["./my-config.json"], []),
    ("vram fit --job my-", ["my-config.json"], []),
]


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


def check(shell, line, offered, wanted, unwanted):
    for word in wanted:
        expect(word in offered, f"{shell}: '{line}' does not offer {word}, but {sorted(offered)[:20]}")
    for word in unwanted:
        expect(word not in offered, f"{shell}: '{line}' offers {word}")


def ask_bash(script, line, folder):
    words = line.split(" ")
    program = (f"source {script}; COMP_WORDS=(\"$@\"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _vram; "
               "printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "--norc", "-c", program, "bash", *words], cwd=folder, capture_output=True, timeout=60,
                          check=False)
    expect(done.stderr == b"", f"bash: '{line}': {done.stderr.decode()}")
    return set(done.stdout.decode().split("\n"))


def bash_takes_options_apart(script, folder):
    for words, wanted in ((["vram", "train", "--stack", "=", "m"], "megatron"), (["vram", "train", "--stack", "="], "fsdp")):
        program = f"source {script}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _vram; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(["bash", "--norc", "-c", program, "bash", *words], cwd=folder, capture_output=True, timeout=60,
                              check=True)
        expect(wanted in done.stdout.decode().split("\n"), f"bash: {words} does not offer {wanted}: {done.stdout}")


def ask_fish(script, line, folder):
    done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C \"$LINE\""],
                          cwd=folder, env={**os.environ, "LINE": line, "HOME": str(folder)}, capture_output=True, timeout=60,
                          check=False)
    expect(done.stderr == b"", f"fish: '{line}': {done.stderr.decode()}")
    return {row.split("\t")[0] for row in done.stdout.decode().split("\n")}


class Zsh:
    """An interactive zsh behind a terminal: its completion works nowhere else."""

    def __init__(self, script, folder):
        functions = pathlib.Path(folder) / "functions"
        functions.mkdir()
        shutil.copy(script, functions / "_vram")
        pathlib.Path(folder, ".zshrc").write_text(
            f"fpath=({functions} $fpath)\nautoload -Uz compinit && compinit -u -D\n"
            "zstyle ':completion:*' verbose no\nunsetopt AUTO_MENU\nLISTMAX=10000\nPS1='READY> '\n"
            # What would be added is printed instead.
            "compadd() { local -a found; local pre=; builtin compadd -O found \"$@\"; "
            "print -rl -- ${found/#/OFFER:$IPREFIX} >>$OFFERS; builtin compadd \"$@\" }\n")
        self.offers = pathlib.Path(folder) / "offers"
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-d", "-i"], {**os.environ, "ZDOTDIR": str(folder), "TERM": "dumb",
                                                    "OFFERS": str(self.offers), "HOME": str(folder)})
        self.read()

    def read(self, quiet=0.7, limit=20):
        end = time.monotonic() + limit
        out = b""
        while time.monotonic() < end and select.select([self.terminal], [], [], quiet if out else 10)[0]:
            try:
                out += os.read(self.terminal, 65536)
            except OSError:
                break
        return out.decode(errors="replace")

    def ask(self, line):
        self.offers.unlink(missing_ok=True)
        os.write(self.terminal, b"\x15" + line.encode() + b"\t")
        shown = self.read()
        for problem in ("command not found", "parse error", "bad pattern", "no such"):
            expect(problem not in shown, f"zsh: '{line}': {shown}")
        if not self.offers.exists():
            return set()
        return {row[6:] for row in self.offers.read_text().split("\n") if row.startswith("OFFER:")}

    def close(self):
        os.write(self.terminal, b"\x15exit\n")
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def zsh_offers(offered, word):
    """Files come in parts, and options may be listed with their descriptions."""
    return word in offered or word.removeprefix("./") in offered


def manual_is_well_formed(vram):
    for lang, sections in (("en", ["NAME", "OPTIONS", "EXIT STATUS", "ENVIRONMENT"]), ("zh", ["名称", "选项", "退出码"])):
        page = subprocess.run([vram, "man", "--lang", lang], capture_output=True, check=True,
                              env={"LC_ALL": "C.UTF-8"}).stdout
        text = page.decode()
        for name in sections:
            expect(f".SH {name}\n" in text, f"no section {name}")
        for option in ("\\-\\-tensor\\-parallel, \\-\\-tp", "\\-\\-offline", "\\-\\-json", "HF_ENDPOINT"):
            expect(option in text, f"no {option} in the page")
        for row in text.split("\n"):
            expect(not row.startswith(".") or re.match(r"\.(TH|SH|SS|TP|PP|br)\b", row), f"a line is read as a request: {row}")
            expect("\\" not in re.sub(r"\\(-|e|&|fB|fI|fR)", "", row), f"a stray backslash: {row}")
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Kutf8", "-Tutf8", "-ww"], input=page, capture_output=True, check=False)
            if b"preconv" in done.stderr:  # a small groff, without encodings
                continue
            problems = [p for p in done.stderr.decode().split("\n") if p and "cannot adjust" not in p and "can't break" not in p]
            expect(done.returncode == 0 and not problems, problems[:5])


def main():
    vram = str(pathlib.Path(sys.argv[1]).resolve())
    failed = 0
    asked = []
    with tempfile.TemporaryDirectory(prefix="vram_completions_") as folder:
        pathlib.Path(folder, "my-config.json").write_text("{}")
        for lang in ("en", "zh"):
            scripts = {}
            for shell in ("bash", "zsh", "fish"):
                script = pathlib.Path(folder, f"vram.{shell}.{lang}")
                script.write_bytes(subprocess.run([vram, "completions", shell, "--lang", lang], capture_output=True,
                                                  check=True, env={"LC_ALL": "C.UTF-8"}).stdout)
                scripts[shell] = script
            work = [("bash takes options apart", lambda s=scripts["bash"]: bash_takes_options_apart(s, folder))]
            for line, wanted, unwanted in CASES:
                work.append((line, lambda s=scripts["bash"], l=line, w=wanted, u=unwanted:
                             check("bash", l, ask_bash(s, l, folder), w, u)))
                if shutil.which("fish"):
                    work.append((line, lambda s=scripts["fish"], l=line, w=wanted, u=unwanted:
                                 check("fish", l, ask_fish(s, l, folder), w, u)))
            zsh = None
            if shutil.which("zsh"):
                home = pathlib.Path(folder, f"zsh.{lang}")
                home.mkdir()
                (home / "my-config.json").write_text("{}")
                zsh = Zsh(scripts["zsh"], home)
                # Each question waits until the terminal is quiet; the other language differs in descriptions alone.
                for line, wanted, unwanted in CASES if lang == "en" else CASES[:4]:
                    def one(l=line, w=wanted, u=unwanted):
                        offered = zsh.ask(l)
                        for word in w:
                            expect(zsh_offers(offered, word), f"zsh: '{l}' does not offer {word}, but {sorted(offered)[:20]}")
                        for word in u:
                            expect(word not in offered, f"zsh: '{l}' offers {word}")
                    work.append((line, one))
            for line, one in work:
                asked.append(line)
                try:
                    one()
                except Failure as problem:
                    failed += 1
                    print(f"FAILED {lang}: {problem}")
            if zsh:
                zsh.close()
        asked.append("manual")
        try:
            manual_is_well_formed(vram)
        except Failure as problem:
            failed += 1
            print(f"FAILED manual: {problem}")
    print(f"{len(asked) - failed} of {len(asked)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
