"""Worked examples with known results, as command lines. Decimal GB are 1e9 bytes, GiB are 2^30."""

GB = 10**9
TB = 10**12
GiB = 2**30

# A decoder of which only the KV shapes matter: 32 layers, heads of 128.
KV32 = "--layers 32 --hidden 4096 --heads 32 --head-dim 128"
# 80 layers, 64 heads of 128.
KV80 = "--layers 80 --hidden 8192 --heads 64 --head-dim 128"
BIG = "--on 64x80GiB --textbook --json"
TRAIN = "--textbook --json"
# A card with the round figures of the examples.
CARD = {"rows.toml": """[[device]]
id = "card"
name = "CARD"
vendor = "example"
arch = "example"
memory_gb = 80
memory_type = "HBM"
bandwidth_gb = 2000
tflops = { bf16 = 312 }
source = "the round figures of the example"
"""}


def states(weights, gradients, optimizer):
    return {"states_whole_model.weights_bytes": weights, "states_whole_model.gradients_bytes": gradients,
            "states_whole_model.optimizer_bytes": optimizer, "states_whole_model.total_bytes": weights + gradients + optimizer}


def case(name, args, **rest):
    return dict(name=name, args=args, **rest)


CASES = [
    # Mixed-precision Adam: 2 + 2 + 12 bytes a parameter.
    case("7e9 parameters, mixed Adam", f"train 7e9 {TRAIN}", json=states(14 * GB, 14 * GB, 84 * GB)),
    case("7e9 parameters, moments alone", f"train 7e9 --master-weights false {TRAIN}", json=states(14 * GB, 14 * GB, 56 * GB)),
    case("70e9 parameters need 14 cards of 80 GB", f"train 70e9 --on 1x80GB {TRAIN}", status=1,
         json={**states(140 * GB, 140 * GB, 840 * GB), "cards_for_states": 14}),
    case("175e9 parameters, ZeRO-3 over 8", f"train 175e9 --on 8x80GB --zero 3 {TRAIN}", status=1,
         json={**states(350 * GB, 350 * GB, 2100 * GB), "states_per_card.total_bytes": 350 * GB, "fits": False}),
    case("65e9 parameters, ZeRO-3 over 8", f"train 65e9 --on 8x80GB --zero 3 {TRAIN}", status=1,
         json={"states_per_card.total_bytes": 130 * GB, "fits": False}),
    case("65e9 parameters, ZeRO-3 over 8, without master copy", f"train 65e9 --on 8x80GB --zero 3 --master-weights false {TRAIN}",
         status=1, json={"states_per_card.total_bytes": 97_500_000_000, "fits": False}),
    case("7.5e9 parameters, ZeRO-1 over 64", f"train 7.5e9 --on 8x8x80GB --zero 1 {TRAIN}",
         json={"states_per_card.total_bytes": 31_406_250_000}),
    case("7.5e9 parameters, ZeRO-2 over 64", f"train 7.5e9 --on 8x8x80GB --zero 2 {TRAIN}",
         json={"states_per_card.total_bytes": 16_640_625_000}),
    case("7.5e9 parameters, ZeRO-3 over 64", f"train 7.5e9 --on 8x8x80GB --zero 3 {TRAIN}",
         json={"states_per_card.total_bytes": 1_875_000_000}),
    case("1e12 parameters, tp 8, pp 64, 3072 cards, ZeRO-1", f"train 1e12 --on 384x8x80GB --tp 8 --pp 64 --zero 1 {TRAIN}",
         near={"states_per_card.total_bytes": (11_718_750_000, 1e-9)}),

    # Activations of the well-known formulas.
    case("GPT block, 194 sbh a layer", f"train --block gpt --layers 1 --hidden 4096 --heads 32 --sequence 4096 --micro-batch 4 --attention eager {TRAIN}",
         json={"ledger.by_category.activations_bytes": 194 * 4096 * 4 * 4096}),
    case("GPT block, 32 layers", f"train --block gpt --layers 32 --hidden 4096 --heads 32 --sequence 2048 --attention eager {TRAIN}",
         json={"ledger.by_category.activations_bytes": 114 * 2048 * 4096 * 32}),
    case("Llama block, 32 layers", f"train --block llama --layers 32 --hidden 4096 --heads 32 --kv-heads 32 --ffn 11008 --sequence 2048 --attention eager {TRAIN}",
         near={"ledger.by_category.activations_bytes": (31.04 * GB, 1e-3)}),

    # KV caches.
    case("KV of 32 KV heads", f"serve {KV32} --kv-heads 32 --context 8192 --concurrency 100 {BIG}",
         json={"kv_bytes_per_token": 524_288, "kv_bytes_per_request": 4 * GiB}),
    case("KV of 8 KV heads", f"serve {KV32} --kv-heads 8 --context 8192 {BIG}",
         json={"kv_bytes_per_token": 131_072, "kv_bytes_per_request": GiB}),
    case("KV of 80 layers at 32,768 tokens", f"serve {KV80} --kv-heads 8 --context 32k {BIG}",
         json={"kv_bytes_per_request": 10_737_418_240}),
    case("KV of 64 heads at 128,000 tokens", f"serve {KV80} --context 128000 {BIG}", json={"kv_bytes_per_request": 312 * GiB + GiB // 2}),
    case("KV of 8 of 64 heads at 128,000 tokens", f"serve {KV80} --kv-heads 8 --context 128000 {BIG}",
         json={"kv_bytes_per_request": 39 * GiB + GiB // 16}),
    case("KV of 64 heads at 128k tokens", f"serve {KV80} --context 128k {BIG}", json={"kv_bytes_per_request": 320 * GiB}),
    case("KV of 8 of 64 heads at 128k tokens", f"serve {KV80} --kv-heads 8 --context 128k {BIG}", json={"kv_bytes_per_request": 40 * GiB}),
    *[case(f"KV of {heads} heads at 131,072 tokens{' in 8 bits' if dtype == 'int8' else ''}",
           f"serve {KV32} --kv-heads {heads} --kv-dtype {dtype} --context 131072 {BIG}", json={"kv_bytes_per_request": size * GiB})
      for heads, dtype, size in ((32, "fp16", 64), (8, "fp16", 16), (4, "fp16", 8), (4, "int8", 4))],

    # Capacity.
    case("K of 80e9 parameters, 64 KV heads", f"serve {KV80} --weights 160GiB --on 8x80GiB --reserve-total 40GiB --context 2048 {TRAIN}",
         json={"largest_concurrency": 88}),
    case("K of 80e9 parameters, 8 KV heads", f"serve {KV80} --kv-heads 8 --weights 160GiB --on 8x80GiB --reserve-total 40GiB --context 2048 {TRAIN}",
         json={"largest_concurrency": 704}),
    case("K of 80e9 parameters, exact units", f"serve {KV80} --weights 160GB --on 8x80GiB --reserve-total 40GiB --context 2048 {TRAIN}",
         json={"largest_concurrency": 90}),
    case("K of 80e9 parameters, exact units, 8 KV heads",
         f"serve {KV80} --kv-heads 8 --weights 160GB --on 8x80GiB --reserve-total 40GiB --context 2048 {TRAIN}", json={"largest_concurrency": 721}),
    case("K of one long request without reserve",
         f"serve 7e9 {KV32} --kv-heads 32 --on 1xA100-80G --usable 79.15GiB --weights-dtype bf16 --context 131072 --reserve 0 {TRAIN}",
         json={"largest_concurrency": 1}),
    case("K of one long request with a fifth of the weights reserved",
         f"serve 7e9 {KV32} --kv-heads 32 --on 1xA100-80G --usable 79.15GiB --weights-dtype bf16 --context 131072 --reserve-ratio 20% {TRAIN}",
         status=1, json={"largest_concurrency": 0}),

    # Time.
    case("70e9 parameters on 2e12 tokens", f"train 70e9 --on 125x8xA100-80G --zero 3 --tokens 2T --mfu 45% {TRAIN}",
         json={"time.dataset_bytes_2_per_token": 4 * TB, "time.dataset_bytes_4_per_token": 8 * TB},
         near={"time.flops": (8.4e23, 1e-9), "time.days": (69.2, 1e-3), "time.card_hours": (1_661_918, 1e-6),
               "time.tokens_per_second": (334e3, 2e-3), "time.dataset_bytes_per_second_2_per_token": (0.67e6, 5e-3),
               "time.dataset_bytes_per_second_4_per_token": (1.34e6, 5e-3)}),
    case("decoding one token of 7e9 parameters", "serve 7e9 --weights-dtype bf16 --on 1xCARD --rows rows.toml --textbook --json",
         files=CARD,
         json={"speed.decode_one_request.bytes_per_step_per_card": 14e9, "speed.decode_one_request.flops_per_step_per_card": 14e9},
         near={"speed.decode_one_request.tokens_per_second_bound": (143, 2e-3)}),

    # Offload.
    case("optimizer offload of 7e9 parameters", f"train 7e9 --on 1xH100 --offload optimizer --pcie 64GB/s --mfu 45% {TRAIN}",
         near={"offload.bytes_per_step": (28 * GB, 0), "offload.seconds_one_way": (0.4375, 1e-9), "offload.seconds_duplex": (0.21875, 1e-9),
               "offload.tokens_to_hide": (4636, 1e-4)}),
    case("65e9 parameters, ZeRO-3 and optimizer offload over 8", f"train 65e9 --on 8x80GB --zero 3 --offload optimizer {TRAIN}",
         json={"states_per_card.weights_bytes": 16_250_000_000, "states_per_card.gradients_bytes": 16_250_000_000,
               "host_bytes_all_cards": 780 * GB}),

    # Machines.
    case("ridge point of an A100 at 2 TB/s", "gpus CARD --rows rows.toml --json",
         files=CARD,
         near={"devices[0].ridge_flops_per_byte.bf16": (156, 1e-9)}),
]
