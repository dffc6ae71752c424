"""Caches on disk: those of the Hugging Face libraries and the command's own."""
import concurrent.futures
import os
import shutil

from server import COMMIT, CONFIG, OTHER_COMMIT, Hub, Repository
from world import expect


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
