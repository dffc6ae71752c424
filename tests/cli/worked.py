#!/usr/bin/env python3
"""Worked examples with known results, as command lines. Decimal GB are 1e9 bytes, GiB are 2^30.

run.py asks every one of them. The same rows make docs/worked-examples.md:

    worked.py --markdown     print it
    worked.py --update       write it anew
    worked.py --check        status 1 where it differs
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENT = SOURCE / "docs" / "worked-examples.md"

GB = 10**9
TB = 10**12
GiB = 2**30

# A decoder of which only the KV shapes matter: 32 layers, heads of 128.
KV32 = "--layers 32 --hidden 4096 --heads 32 --head-dim 128"
# 80 layers, 64 heads of 128.
KV80 = "--layers 80 --hidden 8192 --heads 64 --head-dim 128"
BIG = "--on 64x80GiB --textbook --json"
TRAIN = "--textbook --json"
DAYS = "train 70e9 --on 125x8xA100-80G --zero 3 --tokens 2T --mfu 45%"
# A card with the round figures of the examples.
CARD_FILE = "examples/round-card.toml"
CARD = {CARD_FILE: (SOURCE / CARD_FILE).read_text(encoding="utf-8")}


def states(weights, gradients, optimizer):
    return {"states_whole_model.weights_bytes": weights, "states_whole_model.gradients_bytes": gradients,
            "states_whole_model.optimizer_bytes": optimizer, "states_whole_model.total_bytes": weights + gradients + optimizer}


# What is worked out, by number.
TITLES = {
    1: "7e9 parameters, mixed-precision Adam: 2 + 2 + 12 bytes a parameter",
    2: "70e9 parameters: cards for the states alone, before any activation",
    3: "175e9 parameters, ZeRO-3 over 8 cards of 80 GB",
    4: "65e9 parameters, ZeRO-3 over 8 cards of 80 GB, with and without the fp32 copy",
    5: "One GPT block, hidden 4,096, 32 heads, sequence 4,096, batch 4: 194 s·b·h",
    6: "32 such blocks, sequence 2,048, batch 1: 114 s·b·h a block",
    7: "32 Llama blocks, hidden 4,096, sequence 2,048, batch 1, unfused attention",
    8: "KV cache, 32 layers, 32 KV heads of 128, 16 bits",
    9: "The same with 8 KV heads",
    10: "KV cache, 80 layers, 8 KV heads of 128, 32,768 tokens",
    11: "KV cache, 80 layers, hidden 8,192: all 64 heads or 8 of them, 128,000 and 131,072 tokens",
    12: "Serving 80e9 parameters on 8 cards of 80 GiB, 40 GiB reserved, requests of 2,048 tokens",
    13: "Training 70e9 parameters on 2e12 tokens, 1,000 A100, MFU 45 %",
    14: "Decoding with 7e9 parameters in 16 bits at 2 TB/s: a bound for one request",
    15: "A checkpoint of 40 TB at 1 TB/s",
    16: "KV cache, 32 layers, 131,072 tokens: 32, 8 and 4 KV heads; how many such requests one card holds",
    17: "7.5e9 parameters over 64 cards: ZeRO-1, 2 and 3",
    18: "1e12 parameters, tensor 8, pipeline 64, 3,072 cards, ZeRO-1",
    19: "Optimizer offload of 7e9 parameters at 64 GB/s: what a step moves, and from how many tokens on it hides",
    20: "65e9 parameters, ZeRO-3 over 8 cards, optimizer on the host",
    21: "2e12 tokens: the dataset, and the rate at which that training reads it",
    22: "That training in card-hours",
    23: "Ridge point of a card of 312 TFLOPS and 2 TB/s",
}


def case(row, name, args, **rest):
    return dict(row=row, name=name, args=args, **rest)


CASES = [
    # Mixed-precision Adam: 2 + 2 + 12 bytes a parameter.
    case(1, "7e9 parameters, mixed Adam", f"train 7e9 {TRAIN}", json=states(14 * GB, 14 * GB, 84 * GB)),
    case(1, "7e9 parameters, moments alone", f"train 7e9 --master-weights false {TRAIN}", json=states(14 * GB, 14 * GB, 56 * GB)),
    case(2, "70e9 parameters need 14 cards of 80 GB", f"train 70e9 --on 1x80GB {TRAIN}", status=1,
         json={**states(140 * GB, 140 * GB, 840 * GB), "cards_for_states": 14}),
    case(3, "175e9 parameters, ZeRO-3 over 8", f"train 175e9 --on 8x80GB --zero 3 {TRAIN}", status=1,
         json={**states(350 * GB, 350 * GB, 2100 * GB), "states_per_card.total_bytes": 350 * GB, "fits": False}),
    case(4, "65e9 parameters, ZeRO-3 over 8", f"train 65e9 --on 8x80GB --zero 3 {TRAIN}", status=1,
         json={"states_per_card.total_bytes": 130 * GB, "fits": False}),
    case(4, "65e9 parameters, ZeRO-3 over 8, without master copy", f"train 65e9 --on 8x80GB --zero 3 --master-weights false {TRAIN}",
         status=1, json={"states_per_card.total_bytes": 97_500_000_000, "fits": False}),
    case(17, "7.5e9 parameters, ZeRO-1 over 64", f"train 7.5e9 --on 8x8x80GB --zero 1 {TRAIN}",
         json={"states_per_card.total_bytes": 31_406_250_000}),
    case(17, "7.5e9 parameters, ZeRO-2 over 64", f"train 7.5e9 --on 8x8x80GB --zero 2 {TRAIN}",
         json={"states_per_card.total_bytes": 16_640_625_000}),
    case(17, "7.5e9 parameters, ZeRO-3 over 64", f"train 7.5e9 --on 8x8x80GB --zero 3 {TRAIN}",
         json={"states_per_card.total_bytes": 1_875_000_000}),
    case(18, "1e12 parameters, tp 8, pp 64, 3072 cards, ZeRO-1", f"train 1e12 --on 384x8x80GB --tp 8 --pp 64 --zero 1 {TRAIN}",
         near={"states_per_card.total_bytes": (11_718_750_000, 1e-9)}),

    # Activations of the well-known formulas.
    case(5, "GPT block, 194 sbh a layer", f"train --block gpt --layers 1 --hidden 4096 --heads 32 --sequence 4096 --micro-batch 4 --attention eager {TRAIN}",
         json={"ledger.by_category.activations_bytes": 194 * 4096 * 4 * 4096}),
    case(6, "GPT block, 32 layers", f"train --block gpt --layers 32 --hidden 4096 --heads 32 --sequence 2048 --attention eager {TRAIN}",
         json={"ledger.by_category.activations_bytes": 114 * 2048 * 4096 * 32}),
    case(7, "Llama block, 32 layers", f"train --block llama --layers 32 --hidden 4096 --heads 32 --kv-heads 32 --ffn 11008 --sequence 2048 --attention eager {TRAIN}",
         near={"ledger.by_category.activations_bytes": (31.04 * GB, 1e-3)}),

    # KV caches.
    case(8, "KV of 32 KV heads", f"serve {KV32} --kv-heads 32 --context 8192 --concurrency 100 {BIG}",
         json={"kv_bytes_per_token": 524_288, "kv_bytes_per_request": 4 * GiB}),
    case(9, "KV of 8 KV heads", f"serve {KV32} --kv-heads 8 --context 8192 {BIG}",
         json={"kv_bytes_per_token": 131_072, "kv_bytes_per_request": GiB}),
    case(10, "KV of 80 layers at 32,768 tokens", f"serve {KV80} --kv-heads 8 --context 32k {BIG}",
         json={"kv_bytes_per_request": 10_737_418_240}),
    case(11, "KV of 64 heads at 128,000 tokens", f"serve {KV80} --context 128000 {BIG}", json={"kv_bytes_per_request": 312 * GiB + GiB // 2}),
    case(11, "KV of 8 of 64 heads at 128,000 tokens", f"serve {KV80} --kv-heads 8 --context 128000 {BIG}",
         json={"kv_bytes_per_request": 39 * GiB + GiB // 16}),
    case(11, "KV of 64 heads at 128k tokens", f"serve {KV80} --context 128k {BIG}", json={"kv_bytes_per_request": 320 * GiB}),
    case(11, "KV of 8 of 64 heads at 128k tokens", f"serve {KV80} --kv-heads 8 --context 128k {BIG}", json={"kv_bytes_per_request": 40 * GiB}),
    *[case(16, f"KV of {heads} heads at 131,072 tokens{' in 8 bits' if dtype == 'int8' else ''}",
           f"serve {KV32} --kv-heads {heads} --kv-dtype {dtype} --context 131072 {BIG}", json={"kv_bytes_per_request": size * GiB})
      for heads, dtype, size in ((32, "fp16", 64), (8, "fp16", 16), (4, "fp16", 8), (4, "int8", 4))],

    # Capacity.
    case(12, "K of 80e9 parameters, 64 KV heads", f"serve {KV80} --weights 160GiB --on 8x80GiB --reserve-total 40GiB --context 2048 {TRAIN}",
         json={"kv_bytes_per_token": 2_621_440, "kv_bytes_per_request": 5 * GiB, "largest_concurrency": 88}),
    case(12, "K of 80e9 parameters, 8 KV heads", f"serve {KV80} --kv-heads 8 --weights 160GiB --on 8x80GiB --reserve-total 40GiB --context 2048 {TRAIN}",
         json={"largest_concurrency": 704}),
    case(12, "K of 80e9 parameters, exact units", f"serve {KV80} --weights 160GB --on 8x80GiB --reserve-total 40GiB --context 2048 {TRAIN}",
         json={"largest_concurrency": 90}),
    case(12, "K of 80e9 parameters, exact units, 8 KV heads",
         f"serve {KV80} --kv-heads 8 --weights 160GB --on 8x80GiB --reserve-total 40GiB --context 2048 {TRAIN}", json={"largest_concurrency": 721}),
    case(16, "K of one long request without reserve",
         f"serve 7e9 {KV32} --kv-heads 32 --on 1xA100-80G --usable 79.15GiB --weights-dtype bf16 --context 131072 --reserve 0 {TRAIN}",
         json={"largest_concurrency": 1}),
    case(16, "K of one long request with a fifth of the weights reserved",
         f"serve 7e9 {KV32} --kv-heads 32 --on 1xA100-80G --usable 79.15GiB --weights-dtype bf16 --context 131072 --reserve-ratio 20% {TRAIN}",
         status=1, json={"largest_concurrency": 0}),

    # Time.
    case(13, "70e9 parameters on 2e12 tokens", f"{DAYS} {TRAIN}", near={"time.flops": (8.4e23, 1e-9), "time.days": (69.2, 1e-3)}),
    case(22, "70e9 parameters on 2e12 tokens in card-hours", f"{DAYS} {TRAIN}", near={"time.card_hours": (1_661_918, 1e-6)}),
    case(21, "2e12 tokens to store", "tiers --tokens 2T --json", json={"dataset.bytes_2_per_token": 4e12, "dataset.bytes_4_per_token": 8e12}),
    case(21, "2e12 tokens to read", f"tiers 70e9 --on 125x8xA100-80G --zero 3 --tokens 2T --mfu 45% {TRAIN}",
         near={"dataset.tokens_per_second": (334e3, 2e-3), "dataset.bytes_per_second_2_per_token": (0.67e6, 5e-3),
               "dataset.bytes_per_second_4_per_token": (1.34e6, 5e-3)}),
    case(21, "2e12 tokens read as train says", f"{DAYS} {TRAIN}",
         json={"time.dataset_bytes_2_per_token": 4 * TB, "time.dataset_bytes_4_per_token": 8 * TB},
         near={"time.tokens_per_second": (334e3, 2e-3), "time.dataset_bytes_per_second_2_per_token": (0.67e6, 5e-3)}),
    case(14, "decoding one token of 7e9 parameters", "serve 7e9 --weights-dtype bf16 --on 1xROUND-CARD --rows examples/round-card.toml --textbook --json",
         files=CARD,
         json={"speed.decode_one_request.bytes_per_step_per_card": 14e9, "speed.decode_one_request.flops_per_step_per_card": 14e9},
         near={"speed.decode_one_request.tokens_per_second_bound": (143, 2e-3)}),

    # Offload.
    case(19, "optimizer offload of 7e9 parameters", f"train 7e9 --on 1xH100 --offload optimizer --pcie 64GB/s --mfu 45% {TRAIN}",
         near={"offload.bytes_per_step": (28 * GB, 0), "offload.seconds_one_way": (0.4375, 1e-9), "offload.seconds_duplex": (0.21875, 1e-9),
               "offload.tokens_to_hide": (4636, 1e-4)}),
    case(19, "optimizer offload of 7e9 parameters among the tiers", f"tiers 7e9 --on 1xH100 --pcie 64GB/s --mfu 45% {TRAIN}",
         json={"offload[0].id": "optimizer"},
         near={"offload[0].at_specified_link.link_seconds": (0.4375, 1e-9), "offload[0].at_specified_link.link_seconds_duplex": (0.21875, 1e-9),
               "offload[0].at_specified_link.tokens_to_hide_link": (4636, 1e-4)}),
    case(20, "65e9 parameters, ZeRO-3 and optimizer offload over 8", f"train 65e9 --on 8x80GB --zero 3 --offload optimizer {TRAIN}",
         json={"states_per_card.weights_bytes": 16_250_000_000, "states_per_card.gradients_bytes": 16_250_000_000,
               "host_bytes_all_cards": 780 * GB}),

    # Checkpoints.
    case(15, "checkpoint of 40 TB at 1 TB/s", "tiers --checkpoint 40TB --write 1TB/s --json",
         near={"checkpoint.chosen.write_seconds": (40, 1e-12)}),

    # Machines.
    case(23, "ridge point of an A100 at 2 TB/s", "gpus ROUND-CARD --rows examples/round-card.toml --json",
         files=CARD,
         near={"devices[0].ridge_flops_per_byte.bf16": (156, 1e-9)}),
]


def amount(path, value):
    """A value as the document shows it."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value).lower() if isinstance(value, bool) else str(value)
    whole = f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e18 else f"{value:.6g}"
    name = path.split(".")[-1]
    if re.search(r"_bytes(_|$)|^bytes(_|$)", name) and "per_second" not in name and value >= 1e8:
        if value % (GiB / 16) == 0:
            return f"{whole} = {value / GiB:,.6g} GiB"
        return f"{whole} = {value / TB:,.4g} TB" if value >= TB else f"{whole} = {value / GB:,.4g} GB"
    return whole


def markdown():
    out = ["# Worked examples", "",
           "Textbook figures and the command that gives each. Made by `tests/cli/worked.py` from the rows that the tests",
           "ask: what stands here is what the command answers. The table names fields of the JSON answer; figures marked ≈",
           "are rounded, and the tests hold the answer to them within the rounding. GB is 10^9 and GiB 2^30 bytes."]
    for number in sorted(TITLES):
        out += ["", f"## {number}. {TITLES[number]}", ""]
        cases = [c for c in CASES if c["row"] == number]
        out += ["```sh", *(f"vram {c['args']}" for c in cases), "```", "", "| | field | value |", "| --- | --- | --: |"]
        for c in cases:
            name = c["name"]
            for path, value in c.get("json", {}).items():
                out.append(f"| {name} | `{path}` | {amount(path, value)} |")
                name = ""
            for path, (value, _) in c.get("near", {}).items():
                out.append(f"| {name} | `{path}` | ≈ {amount(path, value)} |")
                name = ""
    return "\n".join(out) + "\n"


def main(arguments):
    if arguments == ["--markdown"]:
        print(markdown(), end="")
        return 0
    if arguments == ["--update"]:
        DOCUMENT.write_text(markdown(), encoding="utf-8")
        return 0
    if arguments == ["--check"]:
        problems = [f"no case for row {n}" for n in TITLES if not any(c["row"] == n for c in CASES)]
        if not DOCUMENT.exists() or DOCUMENT.read_text(encoding="utf-8") != markdown():
            problems.append(f"{DOCUMENT.relative_to(SOURCE)} is not what the rows make; ./dev docs writes it anew")
        print("\n".join(problems) or "up to date")
        return 1 if problems else 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
