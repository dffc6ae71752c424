"""A home, a cache and a hub of its own for each test, and what a run of `vram` there must look like."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess

from server import COMMIT, CONFIG, Hub, Repository

TIMEOUT = 60
PARAMETERS = 202_048  # 2 x 1000 x 64 (embedding, head) + 2 x (12,288 attention + 24,576 MLP + 128 norms) + 64


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


class World:
    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = pathlib.Path(folder)
        self.home = self.folder / "home"
        self.home.mkdir()
        self.hub = Hub()
        self.hub.repositories["org/tiny"] = Repository({"config.json": CONFIG, "README.md": b"text"})
        self.cache = self.home / ".cache" / "vram-ledger"

    def environment(self, extra=None):
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.home), "HF_ENDPOINT": self.hub.url(),
               "HF_HUB_DOWNLOAD_TIMEOUT": "20", "VRAM_NVML_LIBRARY": "/nonexistent/libnvidia-ml.so"}
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        env.update(extra or {})
        return {k: v for k, v in env.items() if v is not None}

    def run(self, *args, env=None, limit_files=False):
        def no_space():
            # Writing beyond the limit fails as on a full disk, instead of ending the process.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))

        done = subprocess.run([self.binary, *args], cwd=self.folder, env=self.environment(env), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=TIMEOUT, check=False,
                              preexec_fn=no_space if limit_files else None)
        out, err = done.stdout.decode(), done.stderr.decode()
        expect("internal error" not in err and done.returncode in (0, 1, 2, 3), f"status {done.returncode}: {err}")
        if done.returncode >= 2:
            expect(err.startswith("vram: ") and err.count("\n") == 1, f"no single line: {err!r}")
        else:
            expect(err == "", f"an answer and an error line: {err}")
        return done.returncode, out, err

    def model(self, name, *args, env=None, limit_files=False):
        """The JSON answer about a model that must be there."""
        status, out, err = self.run("models", "show", name, "--json", *args, env=env, limit_files=limit_files)
        expect(status == 0, f"status {status}: {err}")
        answer = json.loads(out)
        expect(answer["name"] == name.removeprefix("hub:").split("@")[0], answer["name"])
        return answer

    def tiny(self, name="org/tiny", *args, env=None, limit_files=False):
        answer = self.model(name, *args, env=env, limit_files=limit_files)
        expect(answer["counts"]["parameters"] == PARAMETERS, f"{answer['counts']} counts")
        return answer

    def refused(self, name, *pieces, status=3, args=(), env=None):
        found, _, err = self.run("models", "show", name, *args, env=env)
        expect(found == status, f"status {found}, not {status}: {err}")
        for piece in pieces:
            expect(piece in err, f"'{piece}' is not in: {err}")
        expect(len(err) < 600, f"{len(err)} characters: {err}")
        return err

    def behave(self, repository, behaviour, files=None):
        self.hub.repositories[repository] = Repository(files or {"config.json": CONFIG})
        self.hub.behaviours[repository] = behaviour

    def kept(self):
        return sorted(p for p in self.cache.rglob("*") if p.is_file())

    def snapshot(self, root, repository="org/tiny", commit=COMMIT, config=CONFIG, ref="main", links=True):
        """What the Hugging Face libraries leave behind: blobs, and links to them."""
        folder = pathlib.Path(root) / ("models--" + repository.replace("/", "--"))
        place = folder / "snapshots" / commit
        place.mkdir(parents=True)
        (folder / "blobs").mkdir()
        blob = folder / "blobs" / "aaaa"
        blob.write_text(json.dumps(config))
        if links:
            (place / "config.json").symlink_to("../../blobs/aaaa")
        else:
            shutil.copy(blob, place / "config.json")
        if ref:
            target = folder / "refs" / ref
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(commit)
        return folder
