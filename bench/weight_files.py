"""Weight files of real models in full size, sparse: headers as published, zeros for data.

    weight_files.py VRAM FOLDER

makes FOLDER/deepseek-v3 (config.json, index and 163 safetensors of 91 thousand tensors, 700 GB) and
FOLDER/deepseek-v3.1.gguf (1,086 tensors and a vocabulary of 129,280 words, 378 GB).
"""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "hostile"))
from files import gguf, shard, tensor, value, write  # noqa: E402

SHARDS = 163
DTYPES = {"bf16": "BF16", "f32": "F32", "f8_e4m3": "F8_E4M3"}


def numbers(ranges):
    for part in filter(None, ranges.replace(" ", "").split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def tensors_of(vram, model):
    """Every tensor of a catalogue model as (name, dtype, shape), layer by layer."""
    told = json.loads(subprocess.run([vram, "models", "show", model, "--tensors", "--json"], capture_output=True, check=True).stdout)
    told = told.get("answer", told)
    out = []
    for t in told["tensors"]:
        layers = list(numbers(t["layers"])) or [-1]
        experts = t["copies"] // len(layers)
        for layer in layers:
            for e in range(experts):
                name = t["name"].replace("{layer}", str(layer)).replace("{expert}", str(e))
                out.append((layer, name, DTYPES[t["dtype"]], t["shape"]))
    out.sort(key=lambda t: t[0])
    return [t[1:] for t in out]


def write_shards(folder, config, tensors):
    os.makedirs(folder, exist_ok=True)
    write(os.path.join(folder, "config.json"), json.dumps(config))
    each = -(-len(tensors) // SHARDS)
    where, total = {}, 0
    for i in range(SHARDS):
        name = f"model-{i + 1:05}-of-{SHARDS:06}.safetensors"
        mine = tensors[i * each:(i + 1) * each]
        start, size = shard(mine)
        write(os.path.join(folder, name), start, size)
        total += size - len(start)
        where.update((t[0], name) for t in mine)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))}
    write(os.path.join(folder, "model.safetensors.index.json"), json.dumps(index, indent=2))


def gguf_lists():
    """data/truth/gguf_tensors.tsv: name -> rows of (name, blocks, dims, type, bytes)."""
    lists, rows = {}, None
    for line in (ROOT / "data" / "truth" / "gguf_tensors.tsv").read_text().splitlines():
        if line.startswith("= "):
            rows = lists[line[2:].split("\t")[0]] = []
        elif line and line[0] != "#":
            rows.append(line.split("\t"))
    return lists


GGUF_TYPES = {"f32": 0, "q5_0": 6, "q4_k": 12}


def write_gguf(path):
    arch = "deepseek2"
    keys = {"block_count": 61, "embedding_length": 7168, "context_length": 163840, "attention.head_count": 128,
            "attention.head_count_kv": 1, "attention.key_length": 576, "attention.value_length": 512,
            "attention.key_length_mla": 192, "attention.value_length_mla": 128, "attention.q_lora_rank": 1536,
            "attention.kv_lora_rank": 512, "expert_count": 256, "expert_used_count": 8}
    pairs = [value("general.architecture", arch)] + [value(f"{arch}.{k}", v) for k, v in keys.items()]
    pairs.append(value("tokenizer.ggml.tokens", [f"word{i}" for i in range(129_280)]))
    pairs.append(value("tokenizer.ggml.merges", [f"wo rd{i}" for i in range(127_741)]))
    infos, at = [], 0
    for name, blocks, dims, kind, size in gguf_lists()["DeepSeek-V3.1-Terminus.q4_K"]:
        for block in [None] if blocks == "-" else numbers(blocks):
            infos.append(tensor(name.replace("#", str(block)), [int(d) for d in dims.split(",")], GGUF_TYPES[kind], at))
            at += (int(size) + 31) // 32 * 32
    head = gguf(pairs, infos)
    write(path, head, len(head) + at)


def catalogue_config(model):
    for line in (ROOT / "data" / "models.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["id"] == model:
            return row["config"]
    raise KeyError(model)


def make(vram, folder):
    model = "deepseek-ai/DeepSeek-V3"
    write_shards(os.path.join(folder, "deepseek-v3"), catalogue_config(model), tensors_of(vram, model))
    write_gguf(os.path.join(folder, "deepseek-v3.1.gguf"))


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2])
