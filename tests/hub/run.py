#!/usr/bin/env python3
"""Runs `vram` against a hub on 127.0.0.1 and against caches on disk.

    run.py VRAM [--filter TEXT]

Each test is a function whose name begins with test_; it gets a World of its own: a home, a cache and a hub.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import pty
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server import COMMIT, CONFIG, OTHER_COMMIT, Hub, Repository, drip  # noqa: E402

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


# --- fetching ---

def test_a_model_is_fetched_and_kept(w):
    answer = w.tiny()
    expect(answer["origin"] == f"hub {COMMIT[:8]}", answer["origin"])
    expect(answer["source"].endswith(f"/org/tiny/tree/{COMMIT}"), answer["source"])
    expect(len(w.hub.requests) == 2, w.hub.requests)
    expect(all(r["token"] is None for r in w.hub.requests), w.hub.requests)
    again = w.tiny()
    expect(len(w.hub.requests) == 2, "the second run asked again")
    expect(again == answer, "the second run answers otherwise")
    expect(w.tiny("org/tiny", "--offline") == answer, "offline it answers otherwise")
    w.tiny("org/tiny", "--refresh")
    expect(len(w.hub.requests) == 4, "--refresh asked nothing")
    expect(not [p for p in w.home.rglob("*") if p.name.endswith(".tmp")], "temporary files are left")


def test_every_verb_takes_it(w):
    for line in (["fit", "org/tiny", "--on", "1xH100"], ["train", "org/tiny", "--on", "1xH100", "--sequence", "128"],
                 ["serve", "org/tiny", "--on", "1xH100", "--context", "128"]):
        status, out, err = w.run(*line)
        expect(status == 0 and "org/tiny" in out, f"{line}: {status} {out[:300]}{err}")


def test_revisions(w):
    changed = {**CONFIG, "num_hidden_layers": 4}
    w.hub.repositories["org/tiny"].branches.add("refs/pr/7")
    w.hub.repositories["org/new"] = Repository({"config.json": changed}, OTHER_COMMIT, ["main", "v2.0"])
    w.tiny("org/tiny@refs/pr/7")
    w.tiny("org/tiny", "--revision", "refs/pr/7")
    w.tiny(f"org/tiny@{COMMIT}")
    expect(len(w.hub.asked("/api/")) == 1, "a known commit was asked for again")
    expect(w.model("org/new", "--revision", "v2.0")["origin"] == f"hub {OTHER_COMMIT[:8]}", "another commit")
    w.refused("org/tiny@nope", "no revision 'nope'", "commits/main")
    w.refused("org/tiny@a", "second revision", args=("--revision", "b"), status=2)
    w.refused("org/tiny@", "no revision", status=2)
    w.refused("7B", "none", args=("--revision", "x"), status=2)


def test_the_catalogue_wins_without_network(w):
    name = "meta-llama/Llama-3.1-8B"
    w.hub.repositories[name] = Repository({"config.json": CONFIG})
    status, out, _ = w.run("models", "show", name, "--json")
    expect(status == 0 and json.loads(out)["origin"] == "catalogue" and not w.hub.requests, out[:300])
    w.tiny("hub:" + name)
    expect(w.hub.requests, "hub: asked nobody")


def test_names_without_an_organisation(w):
    w.hub.repositories["oldone"] = Repository({"config.json": CONFIG})
    w.tiny("hub:oldone")
    w.refused("oldone", "unknown model", status=2)


def test_impossible_ids(w):
    for name in ("hub:", "hub:a/../b", "hub:org/na me", "hub:org/name/", "hub:-a/b", "hub:a/b.git", "hub:org/n@../x"):
        w.refused(name, status=2)
    expect(not w.hub.requests, w.hub.requests)


def test_a_renamed_repository(w):
    def moved(handler, kind, repository, revision, name):
        handler.send(307, b"", {"Location": handler.path.replace("org/old", "org/tiny")})
        return True
    w.behave("org/old", moved)
    w.tiny("org/old")


def test_hub_without_lists(w):
    def no_list(handler, kind, *_):
        if kind == "list":
            handler.refuse(404)
        return kind == "list"
    w.behave("org/plain", no_list)
    answer = w.tiny("org/plain")
    expect(any("no list of files" in a for a in answer["assumptions"]), answer["assumptions"])


def test_a_branch_that_moves_in_between(w):
    seen = []

    def moving(handler, kind, repository, revision, name):
        if kind == "file" and revision == "main":
            seen.append(revision)
            handler.send(200, json.dumps({**CONFIG, "num_hidden_layers": 9}), {"X-Repo-Commit": OTHER_COMMIT})
            return True
        return False
    w.behave("org/moving", moving)
    w.tiny("org/moving")
    expect(seen, "the branch was not asked for")


# --- tokens and redirects ---

def test_the_token(w):
    def gated(handler, kind, *_):
        if kind == "list":
            return False
        if handler.headers.get("Authorization") != "Bearer hf_good":
            handler.refuse(401, "GatedRepo", "Access to model org/gated is restricted.")
            return True
        return False
    w.behave("org/gated", gated)
    w.refused("org/gated", "is gated", "no token was given", "accept its conditions")
    w.tiny("org/gated", env={"HF_TOKEN": " hf_good\n"})
    shutil.rmtree(w.cache)
    token = w.home / ".cache" / "huggingface" / "token"
    token.parent.mkdir(parents=True)
    token.write_text("hf_good\n")
    w.tiny("org/gated")
    shutil.rmtree(w.cache)
    w.refused("org/gated", "no token was given", env={"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"})
    token.unlink()
    other = w.folder / "token"
    other.write_text("hf_good")
    w.tiny("org/gated", env={"HF_TOKEN_PATH": str(other)})
    err = w.refused("org/other", "HF_TOKEN", status=2, env={"HF_TOKEN": "hf_secret\r\nX-Evil: 1"})
    expect("secret" not in err, "the token is shown")


def test_the_token_stays_with_the_endpoint(w):
    def elsewhere(handler, kind, repository, revision, name):
        if kind == "file":
            handler.send(302, b"", {"Location": w.hub.url("store") + "/|org/away|config.json", "X-Repo-Commit": COMMIT})
        return kind == "file"
    w.behave("org/away", elsewhere)
    w.tiny("org/away", env={"HF_TOKEN": "hf_secret"})
    tokens = {r["server"]: r["token"] for r in w.hub.requests}
    expect(tokens == {"hub": "Bearer hf_secret", "store": None}, tokens)


def test_redirects_that_are_not_followed(w):
    for location, piece in ((w.hub.url("store", "localhost") + "/x", "another host, localhost"), ("/org/loop/x", None),
                            ("ftp://127.0.0.1/x", "usable address"), ("http://u@127.0.0.1/", "usable address"), ("", "usable")):
        def away(handler, *_, to=location):
            handler.send(302, b"", {"Location": to})
            return True
        w.behave("org/away", away)
        if piece:
            w.refused("org/away", piece, "not followed")

    def loop(handler, *_):
        handler.send(302, b"", {"Location": "/org/loop/resolve/main/config.json"})
        return True
    w.behave("org/loop", loop)
    w.refused("org/loop", "in a circle")
    expect(len(w.hub.asked("/org/loop/")) < 30, "a long circle")


# --- what hubs refuse ---

def test_refusals_are_told_apart(w):
    token = {"HF_TOKEN": "hf_some"}

    def answers(status, code=None, message=None, listing=False):
        def behaviour(handler, kind, *_):
            if listing and kind == "list":
                return False
            handler.refuse(status, code, message)
            return True
        return behaviour
    w.behave("org/denied", answers(403, "GatedRepo", "not in the authorized list", listing=True))
    w.refused("org/denied", "is gated", "the token's account may not read it", env=token)
    w.refused("org/nothing", "missing on 127.0.0.1", "or private", "no token was given")
    w.refused("org/nothing", "missing on", "may not read it", env=token)
    w.behave("org/missing", answers(404, "RepoNotFound", "Repository not found"))
    w.refused("org/missing", "missing on")
    w.behave("org/stale", answers(401, None, "Invalid credentials in Authorization header"))
    w.refused("org/stale", "refuses the token", "renew", env=token)
    w.behave("org/disabled", answers(403, None, "Access to this resource is disabled."))
    w.refused("org/disabled", "was disabled")
    w.behave("org/forbidden", answers(403))
    w.refused("org/forbidden", "status 403")
    w.behave("org/lost", answers(404))
    w.refused("org/lost", "status 404", "HF_ENDPOINT")
    w.behave("org/busy", answers(429))
    w.refused("org/busy", "429", "wait")
    w.behave("org/broken", answers(503))
    w.refused("org/broken", "503", "later")
    w.behave("org/teapot", answers(418))
    w.refused("org/teapot", "418")
    expect(not w.kept(), f"refusals are kept: {w.kept()}")
    w.refused("meta-llama/Llama-3.1-80B", "missing", "did you mean meta-llama/Llama-3.1-8")


def test_text_of_the_server_stays_on_one_line(w):
    def evil(handler, kind, *_):
        handler.send(302, b"", {"Location": "http://\x1b[31mevil/"})
        return True
    w.behave("org/evil", evil)
    err = w.refused("org/evil")
    expect("\x1b" not in err, repr(err))


# --- networks that fail ---

def test_no_library(w):
    w.refused("org/tiny", "libcurl", "libcurl4", env={"VRAM_CURL_LIBRARY": "/nonexistent/libcurl.so"})
    w.tiny()
    w.tiny(env={"VRAM_CURL_LIBRARY": "/nonexistent/libcurl.so"})  # from the cache


def test_offline(w):
    w.refused("org/tiny", "not on this machine", "--offline", "huggingface/hub", "vram-ledger", args=("--offline",))
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        w.refused("org/tiny", "forbids the network", env={name: "1"})
    w.refused("org/tiny", "contradicts", args=("--offline", "--refresh"), status=2)
    expect(not w.hub.requests, "the network was used")
    w.tiny(env={"HF_HUB_OFFLINE": "0"})


def test_no_such_host(w):
    w.refused("org/tiny", "no address is known for hub.invalid", env={"HF_ENDPOINT": "https://hub.invalid"})


def test_nobody_listens(w):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    w.refused("org/tiny", "does not accept connections", env={"HF_ENDPOINT": f"http://127.0.0.1:{port}"})


def test_impossible_endpoints(w):
    for endpoint in ("huggingface.co", "ftp://x", "https://", "https://a@b", "http://x y", "https://x/?a=b"):
        w.refused("org/tiny", "HF_ENDPOINT", status=2, env={"HF_ENDPOINT": endpoint})
    w.refused("org/tiny", "HF_HUB_DOWNLOAD_TIMEOUT", status=2, env={"HF_HUB_DOWNLOAD_TIMEOUT": "0"})


def test_an_endpoint_below_a_path(w):
    def strip(path):
        return path.replace("/mirror", "", 1)
    answer = w.hub.answer
    w.hub.answer = lambda handler, path: answer(handler, strip(path))
    w.tiny(env={"HF_ENDPOINT": w.hub.url() + "/mirror/"})
    expect(all(r["path"].startswith("/mirror/") for r in w.hub.requests), w.hub.requests)


def test_slow(w):
    fast = {"HF_HUB_DOWNLOAD_TIMEOUT": "1"}

    def silent(handler, *_):
        time.sleep(8)
        handler.close_connection = True
        return True
    w.behave("org/silent", silent)
    begin = time.monotonic()
    w.refused("org/silent", "too slow", "HF_HUB_DOWNLOAD_TIMEOUT (now 1 s)", env=fast)
    expect(time.monotonic() - begin < 6, "it waited too long")

    def dripping(handler, kind, *_):
        if kind == "file":
            drip(handler, json.dumps(CONFIG).encode(), 8, 80)
        return kind == "file"
    w.behave("org/drip", dripping)
    begin = time.monotonic()
    w.refused("org/drip", "too slow", env=fast)
    expect(time.monotonic() - begin < 7, "it waited too long")
    expect(not w.kept(), f"half a file is kept: {w.kept()}")


def test_cut_off(w):
    def short(handler, kind, *_):
        if kind == "file":
            handler.send(200, json.dumps(CONFIG)[:50], {"X-Repo-Commit": COMMIT}, length=400)
            handler.close_connection = True
        return kind == "file"
    w.behave("org/short", short)
    w.refused("org/short", "cut the answer off after 50 bytes")

    def crash(handler, kind, *_):
        handler.reset()
        return True
    w.behave("org/crash", crash)
    w.refused("org/crash", "127.0.0.1")

    def silence(handler, kind, *_):
        handler.close_connection = True
        return True
    w.behave("org/silence", silence)
    w.refused("org/silence", "cut the answer off after 0 bytes")
    expect(not w.kept(), f"half a file is kept: {w.kept()}")


def test_lying_lengths(w):
    def understated(handler, kind, *_):
        if kind == "file":
            handler.send(200, json.dumps(CONFIG), {"X-Repo-Commit": COMMIT}, length=100)
            handler.close_connection = True
        return kind == "file"
    w.behave("org/less", understated)
    w.refused("org/less", "something else than config.json")

    def endless(handler, kind, *_):
        if kind == "file":
            handler.send_response(200)
            handler.send_header("X-Repo-Commit", COMMIT)
            handler.end_headers()
            handler.close_connection = True
            for _ in range(64):
                handler.wfile.write(b'{"a": 1, ' + b" " * (1 << 20))
        return kind == "file"
    w.behave("org/endless", endless)
    w.refused("org/endless", "more than such a file can hold")

    def many_headers(handler, kind, *_):
        handler.send_response(200)
        for i in range(90):
            handler.send_header(f"X-Filler-{i}", "x" * 1000)
        handler.end_headers()
        handler.close_connection = True
        return True
    w.behave("org/headers", many_headers)
    w.refused("org/headers")
    expect(not w.kept(), f"lies are kept: {w.kept()}")


def test_a_web_page_instead(w):
    page = b"<!DOCTYPE html><html><body>Log in</body></html>"

    def everywhere(handler, *_):
        handler.send(200, page, {"Content-Type": "text/html"})
        return True
    w.behave("org/page", everywhere)
    w.refused("org/page", "a web page instead of config.json", "proxy or login page")

    def unlabelled(handler, kind, *_):
        if kind == "file":
            handler.send(200, page, {"X-Repo-Commit": COMMIT})
        return kind == "file"
    w.behave("org/page2", unlabelled)
    w.refused("org/page2", "a web page instead of config.json")
    for body in (b"", b"hello", b"[1]", b'{"a": 1', b'{"a": 1, "a": 2}', b"\xff\xfe{}"):
        def odd(handler, kind, *_, text=body):
            if kind == "file":
                handler.send(200, text, {"X-Repo-Commit": COMMIT})
            return kind == "file"
        w.behave("org/odd", odd)
        w.refused("org/odd", "something else than config.json")
    expect(not w.kept(), f"pages are kept: {w.kept()}")


def test_lists_that_are_none(w):
    for body in ("[]", "{}", '{"sha": "main", "siblings": []}', '{"sha": "' + COMMIT + '"}', "<html>", '{"sha": 1'):
        def odd(handler, kind, *_, text=body):
            if kind == "list":
                handler.send(200, text)
            return kind == "list"
        w.behave("org/odd", odd)
        answer = w.tiny("org/odd")
        expect(any("no list of files" in a for a in answer["assumptions"]), f"{body}: {answer['assumptions']}")

    def hostile(handler, kind, *_):
        if kind == "list":
            names = ["config.json", "../../../evil", "/etc/passwd", "a//b", "x\n../y", "", 7, None]
            handler.send(200, json.dumps({"sha": COMMIT, "siblings": [{"rfilename": n} for n in names]}))
        return kind == "list"
    w.behave("org/hostile", hostile)
    w.tiny("org/hostile")
    expect(not list(w.folder.rglob("evil")), "a name left the cache")


def test_a_config_that_says_nonsense(w):
    w.hub.repositories["org/odd"] = Repository({"config.json": {**CONFIG, "hidden_size": "wide"}})
    w.refused("org/odd", "hub:org/odd/config.json:1", "hidden_size", status=2)


def test_tls(w):
    pem = w.folder / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", w.folder / "key.pem", "-out",
                    w.folder / "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                    "subjectAltName=IP:127.0.0.1,DNS:localhost"], check=True, capture_output=True)
    pem.write_bytes((w.folder / "key.pem").read_bytes() + (w.folder / "cert.pem").read_bytes())
    hub = Hub(str(pem))
    hub.repositories["org/tiny"] = Repository({"config.json": CONFIG})
    try:
        trusted = {"HF_ENDPOINT": hub.url(), "SSL_CERT_FILE": str(w.folder / "cert.pem"), "HF_TOKEN": "hf_secret"}
        w.refused("org/tiny", "no trusted TLS connection to 127.0.0.1", "SSL_CERT_FILE", env={"HF_ENDPOINT": hub.url()})
        w.refused("org/tiny", "certificates can't be read", env={**trusted, "SSL_CERT_FILE": "/nonexistent/ca.pem"})
        w.refused("org/tiny", "127.0.0.1", env={"HF_ENDPOINT": w.hub.url().replace("http:", "https:")})
        w.tiny(env=trusted)

        def to(location):
            def behaviour(handler, kind, *_):
                if kind == "file":
                    handler.send(302, b"", {"Location": location, "X-Repo-Commit": COMMIT})
                return kind == "file"
            return behaviour
        # Another host is fine over https, and gets no token; plain http is not, not even on the same host.
        hub.behaviours["org/away"] = to(hub.url("store", "localhost") + "/|org/tiny|config.json")
        hub.repositories["org/away"] = Repository({"config.json": CONFIG})
        w.tiny("org/away", env=trusted)
        tokens = {r["server"]: r["token"] for r in hub.requests}
        expect(tokens == {"hub": "Bearer hf_secret", "store": None}, tokens)
        hub.behaviours["org/down"] = to(w.hub.url() + "/org/tiny/resolve/main/config.json")
        hub.repositories["org/down"] = Repository({"config.json": CONFIG})
        w.refused("org/down", "to plain http", env=trusted)
        expect(not w.hub.asked("org/tiny"), "plain http was used")
    finally:
        hub.close()


def test_proxies(w):
    w.tiny(env={"HF_ENDPOINT": "http://hub.example", "http_proxy": w.hub.url(), "HF_TOKEN": "hf_secret"})
    expect(w.hub.requests and all(r["proxy"] for r in w.hub.requests), "the proxy was not asked")
    expect(all(r["token"] is None for r in w.hub.requests), "the token went over plain http")
    w.refused("org/other", "proxy", env={"HF_ENDPOINT": "https://hub.example", "https_proxy": "http://proxy.invalid:3128"})


def test_progress(w):
    def late(handler, kind, *_):
        if kind == "file":
            time.sleep(1.8)
        return False
    w.behave("org/late", late)
    leader, follower = pty.openpty()
    process = subprocess.Popen([w.binary, "models", "show", "org/late"], env=w.environment({"TERM": "xterm"}),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower)
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], TIMEOUT)[0]:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    out, _ = process.communicate(timeout=TIMEOUT)
    os.close(leader)
    expect(process.returncode == 0 and b"org/late" in out, out[:300])
    expect(b"127.0.0.1:" in shown and shown.endswith(b"\r\x1b[K") and b"\n" not in shown, shown)
    shutil.rmtree(w.cache)
    w.tiny("org/late")  # without a terminal nothing is shown: World.run checks


# --- caches ---

def test_the_hugging_face_cache_comes_first(w):
    w.snapshot(w.home / ".cache" / "huggingface" / "hub")
    answer = w.tiny()
    expect(answer["origin"] == f"hub {COMMIT[:8]}" and not w.hub.requests, answer["origin"])
    w.tiny("org/tiny", "--offline")
    w.tiny(f"org/tiny@{COMMIT}")
    expect(not w.hub.requests, w.hub.requests)
    w.tiny("org/tiny", "--refresh")
    expect(w.hub.requests, "--refresh asked nobody")


def test_where_that_cache_may_be(w):
    for index, (name, below) in enumerate((("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub"),
                                           ("XDG_CACHE_HOME", "huggingface/hub"))):
        root = w.folder / f"cache{index}"
        w.snapshot(root / below, links=index % 2 == 0)
        w.tiny("org/tiny", "--offline", env={name: str(root)})
        home = w.home / f"c{index}"
        w.snapshot(home / below)
        if name != "XDG_CACHE_HOME":
            w.tiny("org/tiny", "--offline", env={name: f"~/c{index}"})
    w.refused("org/tiny", args=("--offline",))
    w.refused("org/tiny", args=("--offline",), env={"XDG_CACHE_HOME": "cache3"})  # relative: ignored


def test_damaged_hugging_face_caches(w):
    def fresh():
        shutil.rmtree(w.home / ".cache", ignore_errors=True)
        w.hub.requests.clear()
        return w.snapshot(w.home / ".cache" / "huggingface" / "hub")

    def goes_on():
        w.refused("org/tiny", args=("--offline",))
        w.tiny()
        expect(w.hub.requests, "nobody was asked")
    (fresh() / "blobs" / "aaaa").unlink()                       # a link to nowhere
    goes_on()
    (fresh() / "refs" / "main").write_text("")
    goes_on()
    (fresh() / "refs" / "main").write_text("../../../../etc")
    goes_on()
    (fresh() / "refs" / "main").write_bytes(b"\xff" * 10_000)
    goes_on()
    (fresh() / "refs" / "main").write_text(OTHER_COMMIT)        # a snapshot that is not there
    goes_on()
    shutil.rmtree(fresh() / "snapshots")
    goes_on()
    folder = fresh()
    shutil.rmtree(folder / "refs")
    (folder / "refs").write_text("a file")
    goes_on()
    (fresh() / "refs" / "main").write_text(COMMIT + "\n")       # a line end does no harm
    w.tiny("org/tiny", "--offline")
    blob = fresh() / "blobs" / "aaaa"
    blob.write_text('{"model_type": ')                          # cut off: says which file
    w.refused("org/tiny", "config.json:1", status=2)


def test_clocks_do_not_matter(w):
    w.snapshot(w.home / ".cache" / "huggingface" / "hub", "org/local")
    w.tiny()
    for when in (0, 4_000_000_000):
        for path in (w.home / ".cache").rglob("*"):
            os.utime(path, (when, when), follow_symlinks=False)
        asked = len(w.hub.requests)
        w.tiny()
        w.tiny("org/local")
        expect(len(w.hub.requests) == asked, "the cache was not used")


def test_damaged_entries_of_our_own(w):
    w.tiny()
    files = w.kept()
    expect(len(files) == 3, files)
    for path in files:
        for damage in (b"", b"x", path.read_bytes()[:-1], path.read_bytes() + b" ", path.read_bytes().replace(b"6", b"7"),
                       b"\xff" * 3000):
            good = path.read_bytes()
            if damage == good:
                continue
            path.write_bytes(damage)
            w.hub.requests.clear()
            w.tiny()
            expect(w.hub.requests, f"{path.name}: damage was believed")
            expect(path.read_bytes() == good, f"{path.name} was not mended")


def test_caches_that_cannot_be_written(w):
    def said(answer):
        notes = [a for a in answer["assumptions"] if "could not be kept" in a]
        expect(len(notes) == 1, answer["assumptions"])
    blocked = w.folder / "file"
    blocked.write_text("")
    said(w.tiny(env={"XDG_CACHE_HOME": str(blocked)}))
    said(w.tiny(env={"XDG_CACHE_HOME": "/proc/nowhere"}))
    said(w.tiny(env={"HOME": None}))
    full = w.folder / "full"
    full.mkdir()
    said(w.tiny(env={"XDG_CACHE_HOME": str(full)}, limit_files=True))
    expect(not [p for p in full.rglob("*") if p.is_file()], "a part of a file is left")
    readonly = w.folder / "readonly"
    readonly.mkdir()
    w.tiny(env={"XDG_CACHE_HOME": str(readonly)})
    for path in [readonly, *readonly.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    asked = len(w.hub.requests)
    w.tiny(env={"XDG_CACHE_HOME": str(readonly)})
    expect(len(w.hub.requests) == asked, "a read-only cache was not read")
    w.hub.repositories["org/second"] = Repository({"config.json": CONFIG})
    answer = w.tiny("org/second", env={"XDG_CACHE_HOME": str(readonly)})
    if os.geteuid() != 0:  # root may write everywhere
        said(answer)
    for path in [readonly, *readonly.rglob("*")]:
        path.chmod(0o755)
    status, out, _ = w.run("models", "show", "org/tiny", "--lang", "zh", env={"XDG_CACHE_HOME": str(blocked)})
    expect(status == 0 and "未能保存" in out, out)


def test_the_cache_is_private(w):
    w.tiny()
    for path in [w.cache, *(p for p in w.cache.rglob("*") if p.is_dir())]:
        expect(path.stat().st_mode & 0o077 == 0, f"{path} is open to others")


def test_many_at_once(w):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda _: w.tiny(), range(16)):
            expect(answer["origin"] == f"hub {COMMIT[:8]}", answer["origin"])
    w.tiny("org/tiny", "--offline")


def test_mirrors_do_not_mix(w):
    w.tiny()
    other = Hub()
    other.repositories["org/tiny"] = Repository({"config.json": {**CONFIG, "vocab_size": 2000}}, OTHER_COMMIT)
    try:
        answer = w.model("org/tiny", env={"HF_ENDPOINT": other.url()})
        expect(answer["origin"] == f"hub {OTHER_COMMIT[:8]}", answer["origin"])
    finally:
        other.close()


# --- weights ---

def safetensors(tensors):
    """A file of zeros. tensors: name -> (dtype, shape, bytes)."""
    header, at = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(at)


def tiny_tensors(dtype="BF16", bytes_each=2):
    """What CONFIG describes."""
    shapes = {"model.embed_tokens.weight": [1000, 64], "lm_head.weight": [1000, 64], "model.norm.weight": [64]}
    for layer in range(2):
        before = f"model.layers.{layer}."
        shapes |= {before + "input_layernorm.weight": [64], before + "post_attention_layernorm.weight": [64],
                   before + "self_attn.q_proj.weight": [64, 64], before + "self_attn.k_proj.weight": [32, 64],
                   before + "self_attn.v_proj.weight": [32, 64], before + "self_attn.o_proj.weight": [64, 64],
                   before + "mlp.gate_proj.weight": [128, 64], before + "mlp.up_proj.weight": [128, 64],
                   before + "mlp.down_proj.weight": [64, 128]}
    return {n: (dtype, s, bytes_each * (s[0] * (s[1] if len(s) > 1 else 1))) for n, s in shapes.items()}


def sharded(dtype="BF16", bytes_each=2, count=3):
    """config.json, an index and its shards."""
    names = list(tiny_tensors())
    files, where = {}, {}
    for i in range(count):
        shard = f"model-{i + 1:05}-of-{count:05}.safetensors"
        mine = {n: tiny_tensors(dtype, bytes_each)[n] for n in names[i::count]}
        files[shard] = safetensors(mine)
        where |= {n: shard for n in mine}
    total = PARAMETERS * bytes_each
    return {"config.json": CONFIG, **files, "model.safetensors.index.json": {"metadata": {"total_size": total}, "weight_map": where}}


def test_headers_of_weights(w):
    w.hub.repositories["org/wide"] = Repository(sharded("F32", 4))
    answer = w.tiny("org/wide")
    expect(answer["counts"]["stored_bytes"] == PARAMETERS * 4, answer["counts"])
    ranges = [r for r in w.hub.requests if r["range"]]
    expect(len(ranges) == 6 and {r["server"] for r in ranges} == {"hub", "store"}, ranges)  # each through a redirect
    expect(all(r["range"] == "bytes=0-131071" for r in ranges), ranges)
    whole = [r["path"] for r in w.hub.requests if not r["range"]]
    expect(not [p for p in whole if p.endswith(".safetensors")], whole)
    kept = sum(p.stat().st_size for p in w.kept())
    expect(kept < 20_000, f"{kept} bytes are kept")
    asked = len(w.hub.requests)
    expect(w.tiny("org/wide", "--offline") == answer and len(w.hub.requests) == asked, "the second run asked again")


def test_one_file_of_weights(w):
    w.hub.repositories["org/one"] = Repository({"config.json": CONFIG, "model.safetensors": safetensors(tiny_tensors("F32", 4)),
                                               "consolidated.safetensors": b"another form"})
    answer = w.tiny("org/one")
    expect(answer["counts"]["stored_bytes"] == PARAMETERS * 4, answer["counts"])
    expect(w.tiny("org/one", "--offline") == answer, "offline it answers otherwise")
    answer = w.model("hub:org/one/model.safetensors")
    expect(answer["counts"]["stored_bytes"] == PARAMETERS * 4, answer["counts"])
    w.refused("hub:org/one/other.safetensors", "holds no other.safetensors")


def test_offline_without_the_headers(w):
    w.hub.repositories["org/part"] = Repository(sharded("F32", 4))
    w.tiny("org/part")
    next(p for p in w.kept() if "00002" in p.name).unlink()
    answer = w.tiny("org/part", "--offline")
    expect(answer["counts"]["stored_bytes"] == PARAMETERS * 2, answer["counts"])  # the config says bfloat16
    expect(any("not all of its weights" in a for a in answer["assumptions"]), answer["assumptions"])
    answer = w.tiny("org/part")
    expect(answer["counts"]["stored_bytes"] == PARAMETERS * 4, answer["counts"])


def test_an_interrupted_download(w):
    files = sharded("F32", 4)
    folder = w.snapshot(w.home / ".cache" / "huggingface" / "hub", "org/part")
    place = folder / "snapshots" / COMMIT
    for name in list(files)[1:3]:
        (place / name).write_bytes(files[name])
    (place / "model-00003-of-00003.safetensors").symlink_to("../../blobs/missing")
    (place / "model.safetensors.index.json").write_text(json.dumps(files["model.safetensors.index.json"]))
    answer = w.tiny("org/part", "--offline")
    expect(any("not all of its weights" in a for a in answer["assumptions"]), answer["assumptions"])
    w.hub.repositories["org/part"] = Repository(files)
    answer = w.tiny("org/part")
    expect(w.hub.requests and answer["counts"]["stored_bytes"] == PARAMETERS * 4, answer["counts"])
    (place / "model-00003-of-00003.safetensors").unlink()
    (place / "model-00003-of-00003.safetensors").write_bytes(files["model-00003-of-00003.safetensors"])
    w.hub.requests.clear()
    answer = w.tiny("org/part")
    expect(not w.hub.requests and answer["counts"]["stored_bytes"] == PARAMETERS * 4, answer["counts"])


def test_servers_and_ranges(w):
    body = safetensors(tiny_tensors("F32", 4))
    files = {"config.json": CONFIG, "model.safetensors": body}

    def store(respond):
        def behaviour(handler, kind, *_):
            if kind == "store":
                respond(handler)
            return kind == "store"
        return behaviour
    # The whole file instead of a range: read no further than needed.
    w.behave("org/whole", store(lambda h: h.send(200, body)), files)
    expect(w.tiny("org/whole")["counts"]["stored_bytes"] == PARAMETERS * 4, "sizes of the file")
    for name, piece, respond in (
            ("elsewhere", "other bytes than asked for",
             lambda h: h.send(206, body[10:110], {"Content-Range": f"bytes 10-109/{len(body)}"})),
            ("unnamed", "other bytes than asked for", lambda h: h.send(206, body[:100])),
            ("nonsense", "other bytes than asked for", lambda h: h.send(206, body[:100], {"Content-Range": "bytes 0-99/*"})),
            ("longer", "other bytes than asked for",
             lambda h: h.send(206, body[:100], {"Content-Range": f"bytes 0-199/{len(body)}"})),
            ("fewer", "where 131,072 were asked for",
             lambda h: h.send(206, body[:100], {"Content-Range": f"bytes 0-99/{len(body)}"})),
            ("cut", "cut the answer off", lambda h: (h.send(206, body[:100], {"Content-Range": f"bytes 0-131071/{len(body)}"},
                                                            length=131072), setattr(h, "close_connection", True))),
            ("gone", "status 404", lambda h: h.refuse(404)),
            ("late", "status 403", lambda h: h.refuse(403)),   # an expired link of the store
            ("busy", "status 503", lambda h: h.refuse(503))):
        w.behave(f"org/{name}", store(respond), files)
        w.refused(f"org/{name}", piece)
    expect(not [p for p in w.kept() if p.name.startswith("head-") and "whole" not in str(p)], w.kept())
    # A size that the header contradicts is the file's fault, and named.
    w.behave("org/shrunk", store(lambda h: h.send(206, body[:4000], {"Content-Range": "bytes 0-3999/4000"})), files)
    w.refused("org/shrunk", "hub:org/shrunk/model.safetensors", status=2)
    w.behave("org/empty", lambda *_: False, {"config.json": CONFIG, "model.safetensors": b""})
    w.refused("org/empty", "hub:org/empty/model.safetensors", status=2)
    page = b"<!DOCTYPE html>" + b" " * 200_000
    w.behave("org/login", store(lambda h: h.send(200, page, {"Content-Type": "text/html"})), files)
    w.refused("org/login", "a web page instead of model.safetensors")
    # A lie that was kept is forgotten by --refresh.
    w.refused("org/shrunk", status=2)
    del w.hub.behaviours["org/shrunk"]
    expect(w.tiny("org/shrunk", "--refresh")["counts"]["stored_bytes"] == PARAMETERS * 4, "still the lie")
    w.tiny("org/shrunk", "--offline")


def test_a_large_header(w):
    tensors = tiny_tensors()
    body = safetensors(tensors)
    length = int.from_bytes(body[:8], "little")
    padded = (length + 900_000).to_bytes(8, "little") + body[8:8 + length] + b" " * 900_000 + body[8 + length:]
    w.hub.repositories["org/large"] = Repository({"config.json": CONFIG, "model.safetensors": padded})
    w.tiny("org/large")
    ranges = [r for r in w.hub.requests if r["range"] and r["server"] == "store"]
    expect(len(ranges) <= 4, ranges)
    w.tiny("org/large", "--offline")


def test_many_shards(w):
    w.hub.repositories["org/many"] = Repository(sharded(count=21))
    begin = time.monotonic()
    w.tiny("org/many")
    expect(time.monotonic() - begin < 15, "too slow")
    ranges = [r for r in w.hub.requests if r["range"] and r["server"] == "store"]
    expect(len(ranges) == 21, f"{len(ranges)} ranges")


def test_gguf(w):
    def text(s):
        return len(s).to_bytes(8, "little") + s.encode()

    def number(n, size=4):
        return n.to_bytes(size, "little")
    meta = [("general.architecture", 8, text("llama"))]
    for key, value in (("block_count", 2), ("embedding_length", 64), ("feed_forward_length", 128), ("context_length", 2048),
                       ("attention.head_count", 4), ("attention.head_count_kv", 2)):
        meta.append(("llama." + key, 4, number(value)))
    # A vocabulary that makes the header longer than the first read.
    words = b"".join(text(f"word{i:04}" + "x" * 200) for i in range(1000))
    meta.append(("tokenizer.ggml.tokens", 9, number(8) + number(1000, 8) + words))
    shapes = {"token_embd.weight": [64, 1000], "output.weight": [64, 1000], "output_norm.weight": [64]}
    for i in range(2):
        shapes |= {f"blk.{i}.attn_norm.weight": [64], f"blk.{i}.ffn_norm.weight": [64], f"blk.{i}.attn_q.weight": [64, 64],
                   f"blk.{i}.attn_k.weight": [64, 32], f"blk.{i}.attn_v.weight": [64, 32], f"blk.{i}.attn_output.weight": [64, 64],
                   f"blk.{i}.ffn_gate.weight": [64, 128], f"blk.{i}.ffn_up.weight": [64, 128], f"blk.{i}.ffn_down.weight": [128, 64]}
    infos, at = b"", 0
    for name, shape in shapes.items():
        size = 2
        for n in shape:
            size *= n
        infos += text(name) + number(len(shape)) + b"".join(number(n, 8) for n in shape) + number(1) + number(at, 8)
        at += (size + 31) // 32 * 32
    head = b"GGUF" + number(3) + number(len(shapes), 8) + number(len(meta), 8)
    head += b"".join(text(k) + number(t) + v for k, t, v in meta) + infos
    body = head + bytes(-len(head) % 32) + bytes(at)
    w.hub.repositories["org/quants"] = Repository({"tiny-F16.gguf": body, "tiny-Q8_0.gguf": body, "README.md": b""})
    w.refused("org/quants", "holds 2 GGUF models", "tiny-F16.gguf", status=2)
    answer = w.model("hub:org/quants/tiny-F16.gguf")
    expect(answer["counts"]["parameters"] == PARAMETERS, answer["counts"])
    expect(w.model("hub:org/quants/tiny-F16.gguf", "--offline") == answer, "offline it answers otherwise")
    w.refused("hub:org/quants/tiny-Q8_0.gguf", "not on this machine", args=("--offline",))
    w.hub.repositories["org/single"] = Repository({"tiny-F16.gguf": body})
    expect(w.model("org/single")["counts"]["parameters"] == PARAMETERS, "one GGUF and no config")
    ranges = [r for r in w.hub.asked("single") if r["range"] and r["server"] == "store"]
    expect(len(ranges) <= 3, ranges)


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
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_") and options.filter in n]
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
