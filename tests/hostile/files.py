"""Writers of weight files, whole and broken, for the tests of this folder and the benchmarks. Nothing here checks what it
is given: every kind of broken file can be made. Data is never written: files are sparse."""
import json
import struct

TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_K": (12, 256, 144), "Q6_K": (14, 256, 210), "Q8_0": (8, 32, 34)}


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return u64(len(data)) + data


def pair(key, kind, value):
    return string(key) + u32(kind) + value


def value(key, what):
    """A metadata pair of the usual kind for a Python value."""
    if isinstance(what, bool):
        return pair(key, 7, bytes([what]))
    if isinstance(what, int):
        return pair(key, 4, u32(what))
    if isinstance(what, str):
        return pair(key, 8, string(what))
    if what and isinstance(what[0], str):
        return pair(key, 9, u32(8) + u64(len(what)) + b"".join(string(x) for x in what))
    return pair(key, 9, u32(4) + u64(len(what)) + b"".join(u32(x) for x in what))


def tensor(name, dims, kind, offset):
    return string(name) + u32(len(dims)) + b"".join(u64(d) for d in dims) + u32(kind) + u64(offset)


def gguf(pairs, tensors, version=3, tensor_count=None, pair_count=None):
    """Header from ready-made pairs and tensors (bytes)."""
    head = b"GGUF" + u32(version)
    head += u64(len(tensors) if tensor_count is None else tensor_count)
    head += u64(len(pairs) if pair_count is None else pair_count)
    head += b"".join(pairs) + b"".join(tensors)
    return head + b"\0" * (-len(head) % 32)


def place(rows):
    """Tensors (name, dims, type) one behind the other: their infos, and the bytes of the data."""
    out, at = [], 0
    for name, dims, kind in rows:
        number, block, size = TYPES[kind]
        count = 1
        for d in dims:
            count *= d
        out.append(tensor(name, dims, number, at))
        at += (count // block * size + 31) // 32 * 32
    return out, at


LLAMA = {"general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 256,
         "llama.context_length": 4096, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
         "llama.feed_forward_length": 512}


def llama_rows(blocks=2, kind="Q4_K"):
    rows = [("token_embd.weight", [256, 1000], kind)]
    for i in range(blocks):
        b = f"blk.{i}."
        rows += [(b + "attn_norm.weight", [256], "F32"), (b + "ffn_norm.weight", [256], "F32"),
                 (b + "attn_q.weight", [256, 256], kind), (b + "attn_k.weight", [256, 128], kind),
                 (b + "attn_v.weight", [256, 128], kind), (b + "attn_output.weight", [256, 256], kind),
                 (b + "ffn_gate.weight", [256, 512], kind), (b + "ffn_up.weight", [256, 512], kind),
                 (b + "ffn_down.weight", [512, 256], kind)]
    return rows + [("output_norm.weight", [256], "F32"), ("output.weight", [256, 1000], kind)]


def llama(meta=None, rows=None):
    """A whole small model: header and size of the file. `meta` changes keys; None removes one."""
    keys = {**LLAMA, **(meta or {})}
    infos, size = place(llama_rows() if rows is None else rows)
    head = gguf([value(k, v) for k, v in keys.items() if v is not None], infos)
    return head, len(head) + size


def safetensors(header, length=None):
    data = header if isinstance(header, bytes) else header.encode()
    return u64(len(data) if length is None else length) + data


def entry(dtype, shape, begin, end):
    return json.dumps({"dtype": dtype, "shape": shape, "data_offsets": [begin, end]})


BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1}


def shard(rows):
    """A safetensors file of (name, dtype, shape): its start, and the size of the whole."""
    out, at = [], 0
    for name, dtype, shape in rows:
        size = BYTES[dtype]
        for d in shape:
            size *= d
        out.append(f'"{name}":{{"dtype":"{dtype}","shape":{json.dumps(shape)},"data_offsets":[{at},{at + size}]}}')
        at += size
    header = "{" + ",".join(out) + "}"
    header += " " * (-len(header) % 8)
    start = safetensors(header)
    return start, len(start) + at


def write(path, start, size=None):
    """A file that begins with `start` and is `size` bytes long, sparse behind it."""
    with open(path, "wb") as f:
        f.write(start if isinstance(start, bytes) else start.encode())
        if size is not None:
            f.truncate(size)
