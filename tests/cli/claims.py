"""Common claims about memory, as `vram check` is asked in both languages, and what it must say."""
import shlex

GB = 10**9
GiB = 2**30


def claim(name, en, zh, verdict, json=None, near=None, status=None, **rest):
    """One claim in both languages; the answers as JSON agree, the text holds the words given."""
    status = (0 if verdict == "true" else 1) if status is None else status
    expected = {"verdict": verdict, **(json or {})}
    return [dict(name=f"claim: {name}, {lang}", args=f"check {shlex.quote(text)} --json", status=status, json=expected,
                 near=near or {}) for lang, text in (("en", en), ("zh", zh))]


def told(name, text, *pieces, lang="en", status=1):
    """What a person reads."""
    return dict(name=f"claim told: {name}", args=f"check {shlex.quote(text)} --lang {lang}", status=status, out=list(pieces))


def row(claim_id, en, zh, verdict="false"):
    return claim(claim_id, en, zh, verdict, json={"id": claim_id})


CASES = [
    # The cache is linear in the context.
    *row("kv-grows-linearly", "KV cache grows with the square of the context", "KV 缓存随上下文的平方增长"),
    told("linear cache", "KV cache grows with the square of the context", "grows linearly", "1.00 GiB", "2.00 GiB"),
    *claim("linear cache, said rightly", "the KV cache grows linearly with the context", "KV 缓存随上下文长度线性增长", "true"),

    # ZeRO-3 spreads.
    *row("zero3-spreads", "ZeRO-3 compresses", "ZeRO-3 压缩了模型状态"),
    told("ZeRO-3", "ZeRO-3 compresses", "112.0 GB", "14.0 GB"),

    # Four cards of 80 GB.
    *claim("175B on four cards", "Four 80 GB cards train a 175B model", "4 张 80GB 能训练 175B", "false",
           json={"states_bytes": 2800 * GB, "reading": "full", "readings[0].holds": "false", "readings[1].id": "offload",
                 "readings[1].holds": "true", "readings[4].holds": "false", "readings[5].holds": "true"}),
    *claim("175B served on four cards in 8 bits", "4x80GB serves 175B in 8-bit", "4 张 80GB 能以 8 位部署 175B", "true"),
    *claim("175B served on four cards in 4 bits", "4x80GB serves 175B in 4-bit", "4 张 80GB 能以 4 位部署 175B", "true"),
    *claim("175B on four cards with everything on the host", "175B trains on 4x80GB with ZeRO-Infinity",
           "4 张 80GB 用 ZeRO-Infinity 能训练 175B", "true",
           near={"readings[1].host_bytes_per_node": (2800 * GB, 0.01)}),
    told("host memory", "175B trains on 4x80GB with ZeRO-Infinity", "GiB of host memory a node", status=0),
    *claim("175B on four cards with the optimizer on the host", "175B trains on 4x80GB with optimizer offload",
           "4 张 80GB 用优化器卸载能训练 175B", "false"),
    *claim("70B on four cards", "70B trains on 4x80GB", "70B 能在 4 张 80GB 上训练", "false",
           json={"states_bytes": 1120 * GB, "states_bytes_per_card": 280 * GB, "readings[1].holds": "true", "readings[2].id": "lora",
                 "readings[2].holds": "true"}),
    *claim("70B on four cards by LoRA", "70B fine-tunes with LoRA on 4x80GB", "4 张 80GB 能用 LoRA 微调 70B", "true"),
    told("70B on four cards", "70B trains on 4x80GB", "false: full-parameter training needs", "1.1 TB, 280.0 GB a card over 4",
         "Fits as: with offload", "Llama-3.1-70B"),
    told("70B on four cards, in Chinese", "4 张 80GB 能训练 70B", "不成立：全参数训练每卡需要", "放得下的有：带卸载训练", lang="zh"),
    *claim("at least 14 cards", "training 70B needs at least 14 cards of 80 GB", "训练 70B 至少需要 14 张 80GB", "true"),

    # Mixed precision.
    *row("mixed-precision-states", "Mixed precision halves model states", "混合精度让模型状态减半"),
    told("mixed precision", "Mixed precision halves model states", "112.0 GB mixed and 112.0 GB in pure FP32"),

    # Bits and bytes of a network.
    *row("infiniband-400", "InfiniBand 400 is 400 GB/s", "InfiniBand 400 的带宽是 400 GB/s"),
    told("InfiniBand", "InfiniBand 400 is 400 GB/s", "50 GB/s", "694.5 GB", "14 s"),

    *row("nvidia-smi-view", "nvidia-smi shows what my tensors use", "nvidia-smi 显示的就是张量占用的显存"),

    # The master copy.
    *claim("Adam states of 7B", "Adam states of a 7B model are 56 GB, 4x the weights", "7B 模型的 Adam 状态是 56 GB，是权重的 4 倍", "false",
           json={"amounts[0].bytes": 84 * GB, "amounts[1].id": "moments", "amounts[1].bytes": 56 * GB, "amounts[1].matches": True,
                 "amounts[3].bytes": 112 * GB, "optimizer_over_weights": 6.0}),
    *claim("Adam states of 7B, rightly", "the Adam states of a 7B model are 84 GB, 6x the weights",
           "7B 模型的 Adam 状态是 84 GB，是权重的 6 倍", "true"),
    *row("adam-states-with-master", "Adam states are 4x the weights", "Adam 状态是权重的 4 倍"),

    # Activations.
    *row("activations-a-layer", "30 GB of activations a layer", "7B 模型每层激活有 30 GB"),
    told("activations", "30 GB of activations a layer", "31.0 GB", "One layer takes 0.97 GB", "840.2 GB"),
    *row("flash-attention-term", "34 + 5as/h with Flash Attention", "用 Flash Attention 时每层激活是 34 + 5as/h"),
    told("flash attention", "34 + 5as/h with Flash Attention", "13.0 GB without it and 2.28 GB with it"),

    # Communication.
    *row("zero12-traffic", "ZeRO-1/2 communicate more than DP", "ZeRO-1/2 的通信量比数据并行大"),
    told("traffic", "ZeRO-1/2 communicate more than DP", "24.5 GB a step", "36.8 GB, 1.5x"),

    *row("llama-activation-formula", "Llama activations are 10 + 4·n_kv/n_head", "Llama 激活公式各项之和是 10 + 4·n_kv/n_head", "doubtful"),
    told("Llama formula", "Llama activations are 10 + 4·n_kv/n_head", "12 + 4·n_kv/n_head", "31.0 GB"),

    *row("recompute-threshold", "full recompute pays when more than 33 % is lost", "不重算会损失 33% 以上吞吐时，全部重算才划算"),
    told("recompute", "full recompute pays when more than 33 % is lost", "25%"),

    *row("gqa-saves-by-ratio", "8 KV heads save 8x", "8 个 KV 头能把 KV 缓存省 8 倍", "doubtful"),
    told("grouped heads", "8 KV heads save 8x", "20.00 GiB to 2.50 GiB", "4.00 GiB to 1.00 GiB"),

    # KV of 7B at 128k.
    *claim("KV of 7B", "a 7B model at 128K needs 16 GB of KV", "7B 模型在 128K 下需要 16 GB 的 KV 缓存", "doubtful",
           json={"amounts[0].bytes": 64 * GiB, "amounts[0].matches": False, "amounts[1].bytes": 16 * GiB, "amounts[1].matches": True}),
    *claim("KV of Llama-3-8B", "Llama-3-8B needs 16 GB of KV at 128K", "Llama-3-8B 在 128K 下需要 16 GB 的 KV 缓存", "true",
           json={"amounts[0].bytes": 16 * GiB}),
    *row("kv-against-weights", "10.7 GB of KV exceeds reading the weights of 70B", "读 10.7 GB 的 KV 超过读 70B 模型的权重"),
    told("KV and weights", "10.7 GB of KV exceeds reading the weights of 70B", "140.0 GB", "about 14 such requests"),

    *row("qlora-is-not-offload", "QLoRA fits 65B on 48 GB by offloading", "QLoRA 靠卸载把 65B 放进 48 GB"),
    *claim("QLoRA on 48 GB", "QLoRA fits 65B on 48 GB", "单张 48GB 可以 QLoRA 微调 65B", "true", json={"reading": "qlora"}),

    # Machines.
    *row("ddr5-bandwidth", "8-channel DDR5 gives 90-100 GB/s", "8 通道 DDR5 的带宽是 90-100 GB/s"),
    told("DDR5", "8-channel DDR5 gives 90-100 GB/s", "358 GB/s"),
    *row("pcie-is-not-the-only-path", "PCIe is the only path between host and GPU", "PCIe 是主机与 GPU 之间唯一的通路"),
    *row("most-memory-of-a-card", "80 GB is the most a card has", "80 GB 是单卡显存的上限"),
    told("memory of cards", "80 GB is the most a card has", "141 GB", "288 GB"),

    *row("paged-blocks", "paged KV fails for lack of contiguous blocks", "分页 KV 失败是因为没有连续的块"),
    *row("container-limit", "the container's memory limit killed it for VRAM", "容器因为显存超限被杀"),

    # Bytes a parameter.
    *row("sixteen-bytes-floor", "16 B/param is the floor", "训练每参数至少 16 字节"),
    *row("int4-with-scales", "INT4 is 0.5 B/param", "INT4 每参数 0.5 字节", "doubtful"),
    *row("eighteen-or-twenty-bytes", "training takes 18 B/param", "训练每参数 18 字节", "doubtful"),
    told("18 and 20 bytes", "training takes 20 bytes a parameter", "126.0 GB", "140.0 GB"),

    *row("pipeline-activations", "pipeline parallelism divides activations", "流水线并行能分摊激活"),
    told("pipeline", "pipeline parallelism divides activations", "saves 30.6 GB; the"),
    *row("optimizer-share", "optimizer share vanishes with many cards", "卡多了优化器的占比就可以忽略"),
    told("optimizer share", "optimizer share vanishes with many cards", "3/dp", "3.91 GB"),

    *row("scaling-at-512", "512 cards give 30-40 %", "512 张卡只能发挥 30-40% 的效率"),
    *row("price-carries-a-date", "An H100 costs 2.5 dollars an hour", "H100 一小时 2 美元", "doubtful"),

    *row("empty-cache", "empty_cache returns everything", "empty_cache 会归还全部空闲显存"),
    *row("reserved-decides", "max_memory_allocated decides OOM", "max_memory_allocated 决定会不会 OOM"),
    *row("hf-trainer-zero", "HF Trainer turns on ZeRO by default", "HF Trainer 默认开启 ZeRO"),
    *row("kv-recomputed", "KV is never recomputed", "KV 从不重算"),

    # A service, and the verb itself.
    *claim("a service for 64", "8xA100-80G serves Llama-3.1-70B at 32k for 64 users", "8xA100-80G 能以 32k 上下文服务 64 个用户的 Llama-3.1-70B",
           "false", json={"reading": "serving"}),
    *claim("a service for 40", "8xA100-80G serves Llama-3.1-70B at 32k for 40 users", "8xA100-80G 能以 32k 上下文服务 40 个用户的 Llama-3.1-70B",
           "true"),
    dict(name="claim without quotes", args="check 70B trains on 4x80GB --json", status=1, json={"claim": "70B trains on 4x80GB"}),
    dict(name="claim by its id", args="check kv-grows-linearly --json", status=1, json={"id": "kv-grows-linearly"}),
    dict(name="claims listed", args="check --list", out=["MODEL trains", "kv-grows-linearly"]),
    dict(name="claims listed zh", args="check --list --lang zh", out=["能在 MACHINE 上训练", "KV 缓存随"]),
    dict(name="claims listed as JSON", args="check --list --json", json={"claims[0].id": "kv-grows-linearly", "claims[0].verdict": "false"}),
    dict(name="claim missing", args="check", status=2, err_has=["claim", "is empty", "70B trains on 4x80GB"]),
    dict(name="claim and list", args="check --list 70B", status=2, err_has=["unexpected word '70B'"]),
    dict(name="claim outside", args=["check", "the moon is made of cheese"], status=2,
         err_has=["is not understood", "MODEL trains", "70B trains on 4x80GB", "vram check --list"]),
    dict(name="claim outside zh", args=["check", "月亮是奶酪做的"], status=2, err_has=["is not understood", "4 张 80GB 能训练 175B"]),
    dict(name="claim with an unknown model", args="check 'llama-3.1-70 trains on 8xH100'", status=2,
         err_has=["Did you mean meta-llama/Llama-3.1-70B?"]),
    dict(name="claim with a mistyped word", args="check '70B trians on 4x80GB'", status=2, err_has=["from 'trians' on", "Did you mean trains?"]),
    dict(name="claim without cards", args="check '70B trains'", status=2, err_has=["names no cards"]),
    dict(name="claim with bytes that are no UTF-8", args=["check", "70B trains on \udcff4x80GB"], status=2, err_has=["is no UTF-8"]),
    dict(name="claim of a million words", args=["check", "70B " * 20000], status=2, err_has=["is too long"]),
]
