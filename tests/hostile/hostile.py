#!/usr/bin/env python3
"""Broken and lying weight files: each must give one clear line, status 2, little memory and little time.

    hostile.py VRAM [--filter TEXT]
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from files import (LLAMA, entry, gguf, llama, llama_rows, pair, place, safetensors, shard, string, tensor, u32, u64,  # noqa: E402
                   value, write)

SECONDS, MEGABYTES = 5, 150  # sanitizer builds are slow and large; ordinary ones stay far below
TERA = 1 << 40
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 4976698672\n"
ONE = entry("F16", [2, 2], 0, 8)
CONFIG = """{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "tie_word_embeddings": false}"""


def config_rows():
    rows = [("model.embed_tokens.weight", "BF16", [1000, 64]), ("model.norm.weight", "BF16", [64]),
            ("lm_head.weight", "BF16", [1000, 64])]
    for i in range(2):
        p = f"model.layers.{i}."
        rows += [(p + "input_layernorm.weight", "BF16", [64]), (p + "post_attention_layernorm.weight", "BF16", [64]),
                 (p + "self_attn.q_proj.weight", "BF16", [64, 64]), (p + "self_attn.k_proj.weight", "BF16", [32, 64]),
                 (p + "self_attn.v_proj.weight", "BF16", [32, 64]), (p + "self_attn.o_proj.weight", "BF16", [64, 64]),
                 (p + "mlp.gate_proj.weight", "BF16", [128, 64]), (p + "mlp.up_proj.weight", "BF16", [128, 64]),
                 (p + "mlp.down_proj.weight", "BF16", [64, 128])]
    return rows


def st(*entries):
    return "{" + ",".join(entries) + "}"


def pairs(*more):
    return [value(k, v) for k, v in LLAMA.items()] + list(more)


def with_pair(more):
    infos, size = place(llama_rows())
    head = gguf(pairs(more), infos)
    return head, len(head) + size


def with_tensor(info):
    head = gguf(pairs(), [info])
    return head, len(head) + 4096


HEAD, SIZE = llama()
GOOD_SHARD = shard(config_rows())

# name, files {name: (start, size) or text}, what is asked for, part of the line. A line of None: it must be answered.
CASES = [
    ("good gguf", {"m.gguf": (HEAD, SIZE)}, "m.gguf", None),
    ("good safetensors", {"model.safetensors": GOOD_SHARD}, "model.safetensors", None),
    ("good directory", {"config.json": CONFIG, "model.safetensors": GOOD_SHARD}, ".", None),
    ("directory of one gguf", {"m.gguf": (HEAD, SIZE)}, ".", None),
    ("gguf without its ending", {"blob": (HEAD, SIZE)}, "./blob", None),

    # --- safetensors ---
    ("empty file", {"a.safetensors": ""}, "a.safetensors", "too few for a safetensors file"),
    ("seven bytes", {"a.safetensors": "1234567"}, "a.safetensors", "holds 7 bytes"),
    ("header of a terabyte", {"a.safetensors": (u64(TERA) + b"{", 2 * TERA)}, "a.safetensors", "claims a header of"),
    ("header of 2^64", {"a.safetensors": (u64(2**64 - 1) + b"{", TERA)}, "a.safetensors", "claims a header of"),
    ("header beyond the file", {"a.safetensors": safetensors("{}", 500)}, "a.safetensors", "only 2 follow"),
    ("header of nothing", {"a.safetensors": (u64(0), 100)}, "a.safetensors", "does not begin with '{'"),
    ("99 megabytes of zeros", {"a.safetensors": (u64(99_000_000), 100_000_000)}, "a.safetensors", "does not begin"),
    ("99 megabytes of an open string", {"a.safetensors": (u64(99_000_000) + b'{"', 100_000_000)}, "a.safetensors",
     "control character"),
    ("not utf-8", {"a.safetensors": safetensors(b'{"\xff\xfe": 1}')}, "a.safetensors", "not UTF-8"),
    ("leading spaces", {"a.safetensors": safetensors("  {}")}, "a.safetensors", "does not begin with '{'"),
    ("no json", {"a.safetensors": safetensors("{nope}")}, "a.safetensors", "is no JSON"),
    ("deep nesting", {"a.safetensors": safetensors('{"a":' + "[" * 100000)}, "a.safetensors", "is no JSON"),
    ("nothing in it", {"a.safetensors": safetensors("{}")}, "a.safetensors", "holds no tensors"),
    ("unknown dtype", {"a.safetensors": (safetensors(st('"a":' + entry("Q4", [2, 2], 0, 8))), None)}, "a.safetensors",
     "unknown dtype 'Q4'"),
    ("range is not the shape", {"a.safetensors": safetensors(st('"a":' + entry("F16", [2, 3], 0, 8)))}, "a.safetensors",
     "shape [2, 3] of F16 takes 12"),
    ("range runs backwards", {"a.safetensors": safetensors(st('"a":' + entry("F16", [2, 2], 8, 0)))}, "a.safetensors",
     "run backwards"),
    ("shape overflows", {"a.safetensors": safetensors(st('"a":' + entry("U8", [2**32, 2**32], 0, 0)))},
     "a.safetensors", "exceeds 2^63"),
    ("bytes overflow", {"a.safetensors": safetensors(st('"a":' + entry("F64", [2**61], 0, 0)))}, "a.safetensors",
     "exceeds 2^63"),
    ("number too large", {"a.safetensors": safetensors(st('"a":' + entry("U8", [2**64], 0, 0)))}, "a.safetensors",
     "exceeds 2^63"),
    ("negative dimension", {"a.safetensors": safetensors(st('"a":' + entry("F16", [-2, -2], 0, 8)))}, "a.safetensors",
     "is negative"),
    ("fraction", {"a.safetensors": safetensors(st('"a":' + entry("F16", [2.5, 2], 0, 8)))}, "a.safetensors",
     "no whole number"),
    ("odd four-bit numbers", {"a.safetensors": safetensors(st('"a":' + entry("F4", [3], 0, 1)))}, "a.safetensors",
     "fills no whole bytes"),
    ("same name twice", {"a.safetensors": safetensors(st('"a":' + ONE, '"a":' + entry("F16", [2, 2], 8, 16)))},
     "a.safetensors", "stands there twice"),
    ("overlap", {"a.safetensors": (safetensors(st('"a":' + ONE, '"b":' + ONE)), None)}, "a.safetensors", "overlaps"),
    ("many tensors over one range",
     {"a.safetensors": (safetensors(st(*[f'"t{i}":' + entry("U8", [10**9], 0, 10**9) for i in range(5000)])), 2 * 10**9)},
     "a.safetensors", "overlaps"),
    ("hole", {"a.safetensors": (safetensors(st('"a":' + ONE, '"b":' + entry("U8", [1], 9, 10))), None)},
     "a.safetensors", "a hole of 1 bytes"),
    ("one byte too many", {"a.safetensors": safetensors(st('"a":' + ONE)) + b"\0" * 9}, "a.safetensors",
     "goes on for 1 bytes"),
    ("cut off", {"a.safetensors": safetensors(st('"a":' + ONE)) + b"\0" * 7}, "a.safetensors", "unfinished download"),
    ("metadata of numbers", {"a.safetensors": safetensors('{"__metadata__":{"a":1}}')}, "a.safetensors", "a string"),
    ("names that move the cursor",
     {"a.safetensors": safetensors(st('"a\\u001b[2J\\n":' + entry("Q4", [2, 2], 0, 8)))}, "a.safetensors",
     "unknown dtype"),
    ("lfs pointer", {"a.safetensors": LFS}, "a.safetensors", "is a Git LFS pointer, not the weights (of 4.63 GiB)"),
    ("html", {"a.safetensors": "<!DOCTYPE html><html>not found</html>"}, "a.safetensors", "is an HTML page"),
    ("gguf in its place", {"a.safetensors": (HEAD, SIZE)}, "a.safetensors", "is a GGUF file"),
    ("pickle in its place", {"a.safetensors": b"PK\x03\x04" + b"x" * 50}, "a.safetensors", "is a PyTorch checkpoint"),

    # --- index and directories ---
    ("index of nothing", {"model.safetensors.index.json": "{}"}, "model.safetensors.index.json", "has no weight_map"),
    ("index of missing files", {"model.safetensors.index.json": '{"weight_map": {"a": "m-1.safetensors"}}'},
     "model.safetensors.index.json", "m-1.safetensors is not beside it"),
    ("index that leaves the folder", {"model.safetensors.index.json": '{"weight_map": {"a": "../../etc/passwd"}}'},
     "model.safetensors.index.json", "is no plain file name"),
    ("index with an absolute path", {"model.safetensors.index.json": '{"weight_map": {"a": "/etc/passwd"}}'},
     "model.safetensors.index.json", "is no plain file name"),
    ("index that lies", {"model.safetensors.index.json": '{"weight_map": {"b": "m-1.safetensors"}}',
                         "m-1.safetensors": safetensors(st('"a":' + ONE)) + b"\0" * 8},
     "model.safetensors.index.json", "tensor 'b' is not in m-1.safetensors"),
    ("index that forgets", {"model.safetensors.index.json": '{"weight_map": {}}'}, ".", "holds no tensors"),
    ("index of deep nesting", {"model.safetensors.index.json": '{"metadata": {"a":' + "[" * 100000}, ".",
     "nested too deeply"),
    ("index of pickles", {"pytorch_model.bin.index.json": "{}"}, "pytorch_model.bin.index.json", "PyTorch checkpoints"),
    ("index that is a pointer", {"model.safetensors.index.json": LFS}, ".", "is a Git LFS pointer"),
    ("a part is missing", {"m-00001-of-00002.safetensors": GOOD_SHARD}, ".", "m-00002-of-00002.safetensors is not beside"),
    ("a tensor in two files", {"m-00001-of-00002.safetensors": safetensors(st('"a":' + ONE)) + b"\0" * 8,
                               "m-00002-of-00002.safetensors": safetensors(st('"a":' + ONE)) + b"\0" * 8},
     ".", "tensor 'a' is in"),
    ("two models", {"a.safetensors": GOOD_SHARD, "b.safetensors": GOOD_SHARD}, ".", "holds safetensors of 2 models"),
    ("two gguf models", {"a.gguf": (HEAD, SIZE), "b.gguf": (HEAD, SIZE)}, ".", "holds 2 GGUF models"),
    ("pickles alone", {"pytorch_model.bin": b"PK\x03\x04"}, ".", "holds PyTorch checkpoints alone (pytorch_model.bin)"),
    ("a pickle", {"pytorch_model.bin": b"PK\x03\x04"}, "./pytorch_model.bin", "is a PyTorch checkpoint"),
    ("an adapter", {"adapter_config.json": "{}", "adapter_model.safetensors": GOOD_SHARD}, ".", "holds a LoRA adapter"),
    ("an empty folder", {}, ".", "holds no config.json and no weights"),
    ("config that is a pointer", {"config.json": LFS}, ".", "is a Git LFS pointer"),
    ("weights cut off beside a config", {"config.json": CONFIG, "model.safetensors": (GOOD_SHARD[0], GOOD_SHARD[1] - 1)},
     ".", "unfinished download"),
    ("changes without a config", {"model.safetensors": GOOD_SHARD}, ". --set kv_heads=1", "changes a config"),
    ("changes of a gguf", {"m.gguf": (HEAD, SIZE)}, "m.gguf --set kv_heads=1", "changes a config"),

    # --- gguf ---
    ("magic alone", {"m.gguf": "GGUF"}, "m.gguf", "ends within its header"),
    ("no magic", {"m.gguf": "GGUX" + "\0" * 100}, "m.gguf", "does not begin as a GGUF file"),
    ("empty gguf", {"m.gguf": ""}, "m.gguf", "does not begin as a GGUF file"),
    ("old format", {"m.gguf": "tjgg" + "\0" * 100}, "m.gguf", "from before GGUF"),
    ("version 0", {"m.gguf": gguf([], [], version=0)}, "m.gguf", "version 0"),
    ("version 77", {"m.gguf": gguf([], [], version=77)}, "m.gguf", "version 77"),
    ("header alone", {"m.gguf": gguf([], [])}, "m.gguf", "holds no tensors"),
    ("2^63 tensors", {"m.gguf": (gguf([], [], tensor_count=2**63), TERA)}, "m.gguf", "more tensors than the file"),
    ("2^62 tensors in a terabyte", {"m.gguf": (gguf([], [], tensor_count=2**62), TERA)}, "m.gguf", "more tensors than"),
    ("a billion tensors in a terabyte", {"m.gguf": (gguf([], [], tensor_count=10**9), TERA)}, "m.gguf",
     "claims 1,000,000,000 tensors"),
    ("a million keys of zeros", {"m.gguf": (gguf([], [], pair_count=10**6), TERA)}, "m.gguf", "metadata keys"),
    ("60,000 keys of zeros", {"m.gguf": (gguf([], [], pair_count=60_000), TERA)}, "m.gguf", "without a name"),
    ("2^64-1 keys", {"m.gguf": (gguf([], [], pair_count=2**64 - 1), TERA)}, "m.gguf", "more metadata than the file"),
    ("key of 2^60 bytes", {"m.gguf": (gguf([u64(2**60)], []), TERA)}, "m.gguf", "has a metadata key of"),
    ("key twice", {"m.gguf": with_pair(value("llama.block_count", 2))}, "m.gguf", "stands there twice"),
    ("key of control characters", {"m.gguf": with_pair(value("a\x1b[2J", 2))}, "m.gguf", "is no key"),
    ("unknown value type", {"m.gguf": with_pair(pair("k", 77, b""))}, "m.gguf", "unknown type 77"),
    ("bool of 7", {"m.gguf": with_pair(pair("k", 7, b"\x07"))}, "m.gguf", "bool of value 7"),
    ("string of 2^64-1", {"m.gguf": with_pair(pair("k", 8, u64(2**64 - 1)))}, "m.gguf", "longer than the file"),
    ("array of arrays", {"m.gguf": with_pair(pair("k", 9, u32(9) + u64(1)))}, "m.gguf", "array of arrays"),
    ("array of 2^62", {"m.gguf": with_pair(pair("k", 9, u32(4) + u64(2**62)))}, "m.gguf", "more entries than"),
    ("a billion empty strings in a terabyte",
     {"m.gguf": (gguf([pair("k", 9, u32(8) + u64(2**30))], []), TERA)}, "m.gguf", "more than 256 MiB"),
    ("a billion numbers passed over, then nothing",
     {"m.gguf": (gguf([pair("k", 9, u32(4) + u64(2**30))], [], pair_count=2), TERA)}, "m.gguf", "without a name"),
    ("alignment 0", {"m.gguf": with_pair(value("general.alignment", 0))}, "m.gguf", "power of two"),
    ("alignment 3", {"m.gguf": with_pair(value("general.alignment", 3))}, "m.gguf", "power of two"),
    ("alignment as text", {"m.gguf": with_pair(value("general.alignment", "32"))}, "m.gguf", "accepted: u32"),
    ("alignment of another file", {"m.gguf": with_pair(value("general.alignment", 4096))}, "m.gguf", "a multiple of 4096"),
    ("long tensor name", {"m.gguf": with_tensor(tensor("n" * 64, [1], 0, 0))}, "m.gguf", "too long"),
    ("tensor name of 2^63", {"m.gguf": with_tensor(u64(2**63))}, "m.gguf", "too long"),
    ("five dimensions", {"m.gguf": with_tensor(tensor("t", [1] * 5, 0, 0))}, "m.gguf", "has 5 dimensions"),
    ("dimension beyond 2^63", {"m.gguf": with_tensor(tensor("t", [2**63 + 5], 0, 0))}, "m.gguf", "beyond 2^63"),
    ("too many numbers", {"m.gguf": with_tensor(tensor("t", [2**40, 2**40], 0, 0))}, "m.gguf", "exceeds 2^63"),
    ("too many bytes", {"m.gguf": with_tensor(tensor("t", [2**62], 0, 0))}, "m.gguf", "exceeds 2^63"),
    ("sum of sizes overflows",
     {"m.gguf": (gguf(pairs(), [tensor("a", [2**60], 0, 0), tensor("b", [2**60], 0, 2**62)]), TERA)}, "m.gguf",
     "exceed 2^63"),
    ("unknown tensor type", {"m.gguf": with_tensor(tensor("t", [1], 1000, 0))}, "m.gguf", "unknown type 1000"),
    ("removed tensor type", {"m.gguf": with_tensor(tensor("t", [32], 4, 0))}, "m.gguf", "removed type 4"),
    ("rows that blocks do not divide", {"m.gguf": with_tensor(tensor("t", [100], 12, 0))}, "m.gguf", "a multiple of 256"),
    ("offset off its place", {"m.gguf": with_tensor(tensor("t", [1], 0, 32))}, "m.gguf", "begins at byte 32"),
    ("offset of 2^64-1", {"m.gguf": with_tensor(tensor("t", [1], 0, 2**64 - 1))}, "m.gguf", "a multiple of 32"),
    ("tensor twice", {"m.gguf": llama(rows=llama_rows() + [("output.weight", [256], "F32")])}, "m.gguf",
     "'output.weight' stands there twice"),
    ("cut off by a byte", {"m.gguf": (HEAD, SIZE - 1)}, "m.gguf", "unfinished download"),
    ("cut off in the header", {"m.gguf": HEAD[: len(HEAD) // 2]}, "m.gguf", "ends within its header"),
    ("lfs pointer as gguf", {"m.gguf": LFS}, "m.gguf", "is a Git LFS pointer"),
    ("no architecture", {"m.gguf": llama({"general.architecture": None})}, "m.gguf", "general.architecture' is missing"),
    ("zero blocks", {"m.gguf": llama({"llama.block_count": 0})}, "m.gguf", "is 0"),
    ("four billion blocks", {"m.gguf": llama({"llama.block_count": 2**32 - 1})}, "m.gguf", "is 4294967295"),
    ("zero heads", {"m.gguf": llama({"llama.attention.head_count": 0})}, "m.gguf", "is 0"),
    ("zero kv heads", {"m.gguf": llama({"llama.attention.head_count_kv": 0})}, "m.gguf", "is 0 for block 0"),
    ("heads that do not divide", {"m.gguf": llama({"llama.attention.head_count_kv": 3})}, "m.gguf", "does not divide"),
    ("heads of text", {"m.gguf": llama({"llama.attention.head_count": "4"})}, "m.gguf", "a whole number"),
    ("too few entries", {"m.gguf": llama({"llama.attention.head_count_kv": [2]})}, "m.gguf", "one for each of the 2 blocks"),
    ("width that contradicts", {"m.gguf": llama({"llama.embedding_length": 128})}, "m.gguf", "embedding_length is 128"),
    ("an adapter in gguf", {"m.gguf": llama({"general.type": "adapter"})}, "m.gguf", "holds a LoRA adapter"),
    ("split without its parts", {"m-00001-of-00003.gguf": (HEAD, SIZE)}, "m-00001-of-00003.gguf",
     "m-00002-of-00003.gguf is not beside it"),
    ("split that is none", {"m-00001-of-00002.gguf": (HEAD, SIZE), "m-00002-of-00002.gguf": (HEAD, SIZE)},
     "m-00001-of-00002.gguf", "'split.count' is missing"),
]


def limit():
    # Address space is bounded as well, unless a sanitizer reserves all of it.
    if not os.environ.get("VRAM_SANITIZED"):
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def run(vram, folder, arguments):
    begin = time.monotonic()
    with subprocess.Popen([vram, "models", "show", *arguments.split()], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit,
                          env={**os.environ, "VRAM_NVML_LIBRARY": "/nonexistent"}) as child:
        out, err = child.communicate(timeout=60)
    return child.returncode, out, err, time.monotonic() - begin


def check(vram, case):
    name, files, arguments, expected = case
    with tempfile.TemporaryDirectory() as folder:
        for file, content in files.items():
            start, size = content if isinstance(content, tuple) else (content, None)
            write(os.path.join(folder, file), start, size)
        status, out, err, seconds = run(vram, folder, arguments)
    err = err.decode("utf-8")
    if seconds > SECONDS:
        return f"took {seconds:.1f} s"
    if expected is None:
        return "" if status == 0 and out and not err else f"status {status}: {err}"
    if status != 2 or out:
        return f"status {status}, {len(out)} bytes of output: {err}"
    if err.count("\n") != 1 or not err.endswith("\n") or any(ord(c) < 32 for c in err[:-1]):
        return f"not one clean line: {err!r}"
    return "" if expected in err else f"says {err.strip()!r}, not {expected!r}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vram")
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    options.vram = os.path.abspath(options.vram)
    failed = 0
    cases = [c for c in CASES if options.filter in c[0]]
    for case in cases:
        problem = check(options.vram, case)
        if problem:
            failed += 1
            print(f"FAIL {case[0]}: {problem}")
    # The largest of all runs; Linux counts kilobytes.
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if megabytes > MEGABYTES and not os.environ.get("VRAM_SANITIZED"):
        failed += 1
        print(f"FAIL: {megabytes:.0f} MiB were resident at most")
    print(f"{len(cases) - failed} of {len(cases)} as expected, {megabytes:.0f} MiB at most")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
