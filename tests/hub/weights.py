"""Headers of weights, read by range requests."""
import json
import time

from server import COMMIT, CONFIG, Repository
from world import PARAMETERS, expect


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
