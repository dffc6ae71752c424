"""Fetching, tokens, redirects, refusals, and networks that fail."""
import json
import os
import pty
import select
import shutil
import socket
import subprocess
import time

from server import COMMIT, CONFIG, OTHER_COMMIT, Hub, Repository, drip
from world import TIMEOUT, expect


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
