"""A model hub on 127.0.0.1 that behaves as the real one does, and misbehaves as servers and networks do.

What is asked for decides: /org/name/... is answered by the behaviour registered under "org/name", else as a healthy
repository, else as a missing one. Every request is kept in `requests`.
"""
import http.server
import json
import socket
import ssl
import struct
import threading
import time
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER_COMMIT = "89abcdef0123456789abcdef0123456789abcdef"
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
          "max_position_embeddings": 2048, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = self.path
        via_proxy = path.startswith("http://")
        if via_proxy:
            path = urllib.parse.urlsplit(path).path
        hub = self.server.hub
        hub.requests.append({"path": path, "token": self.headers.get("Authorization"), "range": self.headers.get("Range"),
                             "host": self.headers.get("Host"), "proxy": via_proxy, "server": self.server.name})
        try:
            hub.answer(self, path)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def send(self, status, body=b"", headers=None, length=None):
        if isinstance(body, str):
            body = body.encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code=None, message=None):
        headers = {"Content-Type": "application/json"}
        if code:
            headers["X-Error-Code"] = code
        if message:
            headers["X-Error-Message"] = message
        self.send(status, json.dumps({"error": message or code}), headers)

    def send_file(self, body, headers=None):
        """The file or the range asked for."""
        headers = {"ETag": '"e1"', "Accept-Ranges": "bytes", **(headers or {})}
        asked = self.headers.get("Range")
        if not asked:
            return self.send(200, body, headers)
        first, last = asked.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last), len(body) - 1)
        if first >= len(body):
            return self.send(416, b"", {**headers, "Content-Range": f"bytes */{len(body)}"})
        headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        return self.send(206, body[first:last + 1], headers)

    def reset(self):
        """Ends the connection as a crash does."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


class Repository:
    def __init__(self, files, commit=COMMIT, branches=("main",)):
        self.files = {n: (c if isinstance(c, bytes) else json.dumps(c).encode()) for n, c in files.items()}
        self.commit = commit
        self.branches = set(branches) | {commit}
        self.large = {n for n in self.files if n.endswith((".safetensors", ".gguf"))}


class Hub:
    """The endpoint, and a second server (another port) for large files."""

    def __init__(self, certificate=None):
        self.requests = []
        self.repositories = {}
        self.behaviours = {}   # "org/name" -> function(handler, kind, repository, revision, name) -> answered
        self.scheme = "https" if certificate else "http"
        self.servers = {}
        for name in ("hub", "store"):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            server.daemon_threads = True
            server.hub, server.name = self, name
            if certificate:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate)
                # The handshake belongs to the connection's own thread.
                server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            server.handle_error = lambda *_: None
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            self.servers[name] = server

    def close(self):
        for server in self.servers.values():
            server.shutdown()
            server.server_close()

    def port(self, name="hub"):
        return self.servers[name].server_address[1]

    def url(self, name="hub", host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.port(name)}"

    def asked(self, text):
        return [r for r in self.requests if text in r["path"]]

    def answer(self, handler, path):
        if handler.server.name == "store":
            _, repository, name = urllib.parse.unquote(path).split("|", 2)
            behaviour = self.behaviours.get(repository)
            if behaviour and behaviour(handler, "store", repository, "", name):
                return None
            return handler.send_file(self.repositories[repository].files[name])
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            kind, repository, revision, name = "list", "/".join(parts[2:-2]), parts[-1], ""
        elif "resolve" in parts:
            at = parts.index("resolve")
            kind, repository, revision = "file", "/".join(parts[:at]), parts[at + 1]
            name = urllib.parse.unquote("/".join(parts[at + 2:]))
        else:
            return handler.refuse(404)
        revision = urllib.parse.unquote(revision)
        behaviour = self.behaviours.get(repository)
        if behaviour and behaviour(handler, kind, repository, revision, name):
            return None
        return self.healthy(handler, kind, repository, revision, name)

    def healthy(self, handler, kind, repository, revision, name):
        found = self.repositories.get(repository)
        if not found:
            return handler.refuse(401, "RepoNotFound", "Repository not found")
        if revision not in found.branches:
            return handler.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if kind == "list":
            files = [{"rfilename": n} for n in sorted(found.files)]
            return handler.send(200, json.dumps({"id": repository, "sha": found.commit, "private": False, "gated": False,
                                                 "siblings": files}), {"Content-Type": "application/json"})
        headers = {"X-Repo-Commit": found.commit}
        if name not in found.files:
            return handler.refuse(404, "EntryNotFound", "Entry not found")
        if name in found.large:
            location = self.url("store") + urllib.parse.quote(f"/|{repository}|{name}")
            return handler.send(302, b"", {**headers, "Location": location, "X-Linked-Size": str(len(found.files[name])),
                                           "X-Linked-ETag": '"linked"'})
        return handler.send_file(found.files[name], headers)


def drip(handler, body, seconds, pieces):
    """A body that arrives in pieces over that time."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    step = max(1, len(body) // pieces)
    for at in range(0, len(body), step):
        handler.wfile.write(body[at:at + step])
        handler.wfile.flush()
        time.sleep(seconds / pieces)
