"""What `vram` is asked, and what must come back. One dict a case:

name      unique
args      command line (a string is split as a shell does)
status    exit status (0)
err       the one error line, without "vram: " and newline
err_has   pieces of the error line
out       pieces of standard output; out_lacks: pieces that must not be there; match: regular expressions
json      {"path.to[0].value": expected} in the JSON answer
near      {"path": (value, relative tolerance)} in the JSON answer
golden    file in tests/golden that the JSON answer must equal
files     {name: content} in the folder where the command runs
leaves    {name: [pieces]} files that it must leave (None: must not); any other new file is an error
then      a second command in the same folder that must give the same answer
env       environment variables
wide      True: lines may be longer than 100 columns
"""
import json

# One good command of each verb, and whether --save makes sense for it: every check of a verb runs on these.
VERBS = [
    ("models show meta-llama/Llama-3.1-8B", True),
    ("fit meta-llama/Llama-3.1-8B --on 8xH100", True),
    ("train meta-llama/Llama-3.1-8B --on 8xH100 --stack fsdp", True),
    ("serve meta-llama/Llama-3.1-8B --on 1xH100 --context 8k", True),
    ("check 'Llama-3.1-8B fine-tunes on one 4090'", False),
    ("sheet meta-llama/Llama-3.1-8B --on 8xH100 --tokens 1T", True),
    ("diff '--zero 1' '--zero 3 --tp 2' --model meta-llama/Llama-3.1-8B --on 8xH100", False),
    ("tiers meta-llama/Llama-3.1-8B --on 8xH100 --tokens 1T", True),
    ("gpus h100", False),
]

TINY = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
        "max_position_embeddings": 512, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
# embedding and head 2 x 1000 x 64; a layer: q and o 2 x 64 x 64, k and v 2 x 64 x 32, MLP 3 x 64 x 128, norms 2 x 64; norm 64
TINY_PARAMETERS = 2 * 1000 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64) + 64


def tiny(**changes):
    return json.dumps({**TINY, **changes})


CASES = [
    # --- the command itself ---
    dict(name="alone", args="", out=["vram help VERB", "Verbs", "vram fit", "vram train"]),
    dict(name="help", args="help", out=["Verbs"]),
    dict(name="help zh", args="--lang zh", out=["命令", "大模型的显存账本"]),
    dict(name="version", args="--version", match=[r"\Avram \d+\.\d+\.\d+\n\Z"]),
    dict(name="help all names", args="help models --all", out=["--num-hidden-layers"], wide=True),
    dict(name="unknown verb", args="modles", status=2,
         err="unknown verb 'modles'. Did you mean models? (vram help lists all)"),
    dict(name="unknown verb, nothing near", args="xyzzy", status=2, err="unknown verb 'xyzzy' (vram help lists all)"),
    dict(name="unknown verb in help", args="help modles", status=2, err_has=["Did you mean models?"]),
    dict(name="empty verb", args=[""], status=2, err_has=["unknown verb"]),
    dict(name="option without verb", args="--tensors", status=2, err_has=["unknown option '--tensors'"]),
    dict(name="unknown option", args="models --tensrs", status=2,
         err="unknown option '--tensrs'. Did you mean --tensors? (vram help models lists all)"),
    dict(name="unknown short option", args="models -x", status=2, err_has=["unknown option '-x'"]),
    dict(name="option of another verb", args="models show gpt2 --zero 3", status=2, err_has=["--zero is not an option of vram models"]),
    dict(name="option lacks its value", args="models show --layers", status=2,
         err="--layers lacks a value; accepted: a whole number, from 1 to 10,000"),
    dict(name="language unknown", args="models --lang fr", status=2, err="--lang 'fr' is not known here; accepted: en or zh"),
    dict(name="colour unknown", args="models --color red", status=2, err_has=["auto, always or never"]),
    dict(name="width too small", args="models --width 3", status=2, err_has=["40 to 1000 columns"]),
    dict(name="control characters are not printed", args=["models", "--\x1b[31mx"], status=2, err_has=["?[31mx"]),
    dict(name="bytes that are no UTF-8", args=["models", "show", "\udcff\udcfe"], status=2, err_has=["unknown model"]),
    dict(name="error as JSON", args="models show llama-3.1-70 --json", status=2,
         json={"error.near_miss": "meta-llama/Llama-3.1-70B", "error.value": "llama-3.1-70", "error.status": 2}),

    # --- models ---
    dict(name="models", args="models", out=["model ", "KV/token", "--all lists them"]),
    dict(name="models all", args="models --all", out=["Llama-3.1-70B"], out_lacks=["--all lists them"]),
    dict(name="models searched", args="models llama 70b", out=["Llama-3.1-70B"], out_lacks=["gpt2"]),
    dict(name="models, nothing found", args="models nosuchmodel", out=["0 of "]),
    dict(name="models json", args="models llama-3.1-8b --json", json={"models[0].layers": 32, "models[0].kv_bytes_per_token_16bit": 131072}),
    dict(name="models show", args="models show Llama-3.1-70B", out=["70,553,706,496", "80 layers", "64 query / 8 KV heads"]),
    dict(name="models show golden", args="models show meta-llama/Llama-3.1-8B --tensors --json", golden="models_llama_3_1_8b.json"),
    dict(name="fit golden", args="fit meta-llama/Llama-3.1-8B --on 2xRTX4090 --json", golden="fit_llama_3_1_8b.json"),
    dict(name="train golden", args="train meta-llama/Llama-3.1-8B --on 8xH100 --stack megatron --tp 2 --pp 2 --sequence 4096 --micro-batch 1 --ga 4 --json", golden="train_llama_3_1_8b.json"),
    dict(name="serve golden", args="serve meta-llama/Llama-3.1-8B --on 1xL40S --context 8192 --json", golden="serve_llama_3_1_8b.json"),
    dict(name="gpus golden", args="gpus --compare A100,H100 --json", golden="gpus_a100_h100.json"),
    dict(name="models show moe golden", args="models show deepseek-ai/DeepSeek-V3 --json", golden="models_deepseek_v3.json"),
    dict(name="models show alias in any case", args="models show LLAMA_3.1-8b --json", json={"name": "meta-llama/Llama-3.1-8B"}),
    dict(name="unknown model", args="models show llama-3.1-70", status=2,
         err="unknown model 'llama-3.1-70'. Did you mean meta-llama/Llama-3.1-70B? (vram models lists all)"),
    dict(name="unknown model, nothing near", args="models show qqqqqqqqqqqq", status=2,
         err_has=["unknown model 'qqqqqqqqqqqq'", "accepted: a catalogue id"]),
    dict(name="two models", args="models show gpt2 opt", status=2, err_has=["unexpected word 'opt'"]),
    dict(name="no model", args="models show", status=2, err_has=["MODEL is missing"]),
    dict(name="tensors of the list", args="models --tensors", status=2, err_has=["--tensors needs a model"]),
    dict(name="model by config.json", args="models show config.json --json", files={"config.json": tiny()},
         json={"counts.parameters": TINY_PARAMETERS, "kv_bytes_per_token_16bit": 2 * 2 * 2 * 16 * 2}),
    dict(name="model by directory", args="models show tiny --json", files={"tiny/config.json": tiny()},
         json={"counts.parameters": TINY_PARAMETERS, "name": "tiny"}),
    dict(name="model by directory with slash", args="models show ./tiny/ --json", files={"tiny/config.json": tiny()}, json={"name": "tiny"}),
    dict(name="directory without config", args="models show ./d", files={"d/readme": "x"}, status=2,
         err_has=["holds no config.json and no weights"]),
    dict(name="missing file", args="models show ./no/config.json", status=3, err_has=["./no/config.json"]),
    dict(name="config with a broken line", args="models show config.json", files={"config.json": '{\n  "hidden_size": 1,\n  oops\n}'},
         status=2, err_has=["config.json:3"]),
    dict(name="config of the wrong type", args="models show config.json", files={"config.json": tiny(hidden_size="wide").replace(", ", ",\n")},
         status=2, err_has=["config.json:3", "hidden_size", "'wide'"]),
    dict(name="config with a huge number", args="models show config.json", files={"config.json": tiny(hidden_size=10**30)}, status=2,
         err_has=["hidden_size"]),
    dict(name="config with a negative number", args="models show config.json", files={"config.json": tiny(num_hidden_layers=-2)}, status=2,
         err_has=["num_hidden_layers"]),
    dict(name="config with NaN", args="models show config.json", files={"config.json": tiny(vocab_size=float("nan"))}, status=2,
         err_has=["config.json"]),
    dict(name="config of great depth", args="models show config.json", files={"config.json": "[" * 100000}, status=2, err_has=["config.json"]),
    dict(name="empty config", args="models show config.json", files={"config.json": ""}, status=2, err_has=["config.json"]),
    dict(name="binary config", args="models show config.json", files={"config.json": bytes(range(256))}, status=2, err_has=["config.json"]),
    dict(name="model as a size", args="models show 7B --json", json={"counts.parameters": 7_000_000_000, "shape_known": False}),
    dict(name="model by --params", args="models show --params 7e9 --json", json={"counts.parameters": 7_000_000_000}),
    dict(name="size and params contradict", args="models show 7B --params 8B", status=2,
         err="--params '8,000,000,000' contradicts the model '7B'"),
    dict(name="model by hand", args="models show --layers 2 --hidden 64 --heads 4 --kv-heads 2 --ffn 128 --vocab 1000 --json",
         json={"kv_bytes_per_token_16bit": 2 * 2 * 2 * 16 * 2, "origin": "by hand"}),
    dict(name="hand options on a known model", args="models show gpt2 --layers 3", status=2,
         err_has=["--layers describes a model by hand", "--set"]),
    dict(name="model changed", args="models show meta-llama/Llama-3.1-8B --set kv_heads=4 --json",
         json={"hypothetical": True, "kv_bytes_per_token_16bit": 65536}),
    dict(name="model changed, twice and by comma", args="models show meta-llama/Llama-3.1-8B --set kv_heads=4 --set layers=16,vocab=1000 --json",
         json={"vocab": 1000, "kv_bytes_per_token_16bit": 32768}),
    dict(name="unknown change", args="models show gpt2 --set kv_hedas=4", status=2, err_has=["kv_hedas"]),
    dict(name="impossible change", args="models show meta-llama/Llama-3.1-8B --set kv_heads=7", status=2, err_has=["7"]),
    dict(name="change without value", args="models show gpt2 --set kv_heads", status=2,
         err="--set 'kv_heads' is no change of a field; accepted: FIELD=VALUE, such as kv_heads=8"),
    dict(name="change of a size", args="models show 7B --set layers=3", status=2, err_has=["--set", "only a size"]),
    dict(name="names of frameworks", args="models show --num_hidden_layers=2 --hidden-size 64 --num_attention_heads 4 --json",
         json={"hidden": 64}),
    dict(name="zero heads", args="models show --layers 2 --hidden 64 --heads 0", status=2, err_has=["--heads '0' is out of range"]),
    dict(name="heads that do not divide", args="models show --layers 2 --hidden 65 --heads 4", status=2,
         err="--heads '4' does not divide the hidden size 65; accepted: a divisor of it, or --head-dim"),
    dict(name="absurd layers", args="models show --layers 1e30 --hidden 64 --heads 4", status=2, err_has=["--layers '1e30'"]),
    dict(name="the last value counts", args="models show --layers 9 --layers 2 --hidden 64 --heads 4 --json", json={"layer_kinds[0].count": 2}),

    # --- job files ---
    dict(name="job file, flat YAML", args="models show --job j.yaml --json", files={"j.yaml": "model: gpt2\n"}, json={"name": "openai-community/gpt2"}),
    dict(name="job file, groups", args="models show --job j.yaml --json",
         files={"j.yaml": "model:\n  layers: 2\n  hidden: 64\n  heads: 4\ntraining:\n  tp: 2\n"}, json={"hidden": 64}),
    dict(name="job file, JSON", args="models show --job j.json --json", files={"j.json": '{"params": "7B"}'},
         json={"counts.parameters": 7_000_000_000}),
    dict(name="job file, TOML", args="models show --job j.toml --json", files={"j.toml": '[model]\nparams = "7B"\n'},
         json={"counts.parameters": 7_000_000_000}),
    dict(name="option over job file", args="models show --job j.yaml --hidden 128 --json",
         files={"j.yaml": "layers: 2\nhidden: 64\nheads: 4\n"}, json={"hidden": 128}),
    dict(name="job file, unknown key", args="models show --job j.yaml", files={"j.yaml": "model: gpt2\ntensor_paralel: 2\n"}, status=2,
         err="j.yaml:2: tensor_paralel is not a key of a job file. Did you mean tensor_parallel?"),
    dict(name="job file, wrong type", args="models show --job j.yaml", files={"j.yaml": "model: gpt2\n\ntp: [1, 2]\n"}, status=2,
         err_has=["j.yaml:3: tp '[1, 2]' is a list"]),
    dict(name="job file, bad value", args="models show --job j.yaml", files={"j.yaml": "model: gpt2\nmfu: 45\n"}, status=2,
         err_has=["j.yaml:2: mfu '45'", "say 45% or 0.45"]),
    dict(name="job file, twice by alias", args="models show --job j.yaml", files={"j.yaml": "tp: 1\ntensor_parallel: 2\n"}, status=2,
         err_has=["j.yaml:2", "given twice (also as tp)"]),
    dict(name="job file, contradiction", args="models show gpt2 --job j.yaml", files={"j.yaml": "zero: 2\nsharding: ddp\n"}, status=2,
         err_has=["--zero '2' contradicts --sharding ddp"]),
    dict(name="job file, a list", args="models show --job j.yaml", files={"j.yaml": "- a\n- b\n"}, status=2, err_has=["j.yaml:1"]),
    dict(name="job file, empty", args="models show --job j.yaml", files={"j.yaml": ""}, status=2, err_has=["j.yaml"]),
    dict(name="job file, broken YAML", args="models show --job j.yaml", files={"j.yaml": "model: [gpt2\n"}, status=2, err_has=["j.yaml"]),
    dict(name="job file, deep YAML", args="models show --job j.yaml", files={"j.yaml": "[" * 50000}, status=2, err_has=["j.yaml"]),
    dict(name="job file, deep JSON", args="models show --job j.json", files={"j.json": '{"model":' * 50000}, status=2, err_has=["j.json"]),
    dict(name="job file, many values", args="models show --job j.json", files={"j.json": json.dumps({"set": ["a=1"] * 20000})}, status=2,
         err_has=["j.json"]),
    dict(name="job file, huge", args="models show --job j.yaml", files={"j.yaml": "#" * (5 << 20)}, status=2, err_has=["j.yaml"]),
    dict(name="job file, aliases that grow", args="models show --job j.yaml", status=2, err_has=["j.yaml"],
         files={"j.yaml": "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
             f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9))}),
    dict(name="job file missing", args="models show --job no.yaml", status=3, err_has=["no.yaml"]),
    dict(name="job file is a directory", args="models show --job d", files={"d/x": ""}, status=2, err_has=["d: is a directory"]),

    # --- saving ---
    dict(name="save", args="models show --layers 2 --hidden 64 --heads 4 --set vocab=500 --save out.yaml --json",
         leaves={"out.yaml": ["layers: 2", "hidden: 64"]}, then="models show --job out.yaml --json"),
    dict(name="save as JSON", args="models show gpt2 --save out.json --json", leaves={"out.json": ['"model": "gpt2"']},
         then="models show --job out.json --json"),
    dict(name="save over a file", args="models show gpt2 --save old.yaml", files={"old.yaml": "model: other\n"}, leaves={"old.yaml": ["gpt2"]}),
    dict(name="save nothing where refused", args="models show nosuchmodel --save out.yaml", status=2, leaves={"out.yaml": None}),
    dict(name="save as TOML", args="models show gpt2 --save out.toml", status=2, err_has=["--save 'out.toml'"], leaves={"out.toml": None}),
    dict(name="save where no folder is", args="models show gpt2 --save no/out.yaml", status=3, err_has=["no/out.yaml"]),
    dict(name="save to nothing", args=["models", "show", "gpt2", "--save", ""], status=2, err_has=["--save is empty"]),

    # --- rows of one's own ---
    dict(name="rows missing", args="models --rows no.toml", status=3, err_has=["no.toml"]),
    dict(name="rows without rows", args="models --rows r.toml", files={"r.toml": "x = 1\n"}, status=2, err_has=["r.toml", "[[device]]"]),
    dict(name="rows that are broken", args="models --rows r.toml", files={"r.toml": "[[device]\n"}, status=2, err_has=["r.toml:1"]),

    # --- gpus ---
    dict(name="gpus", args="gpus", out=["H100"]),
    dict(name="gpus json", args="gpus h100-80-sxm5 --json", json={"devices[0].id": "h100-80-sxm5"}),
    dict(name="gpus compared", args="gpus --compare A100-80G,H100 --json", out=["comparison"]),
    dict(name="gpus, one compared", args="gpus --compare H100", status=2, err_has=["compare"]),
    dict(name="gpus, unknown compared", args="gpus --compare H100,H1000X", status=2, err_has=["H1000X"]),
    dict(name="gpus, nothing found", args="gpus nosuchcard", status=2, err_has=["nosuchcard"]),

    # --- jobs that contradict the model or the machine: train ---
    *[dict(name=f"train refuses {options}", args=f"train meta-llama/Llama-3.1-8B --on 8xH100 {options}", status=2, err_has=pieces)
      for options, pieces in [
          ("--tp 3", ["--tensor-parallel", "3", "32"]), ("--tp 64", ["--tensor-parallel"]), ("--tp 0", ["--tensor-parallel '0'"]),
          ("--tp 8 --pp 2", ["8"]), ("--dp 3", ["8"]), ("--pp 3 --tp 1 --dp 1", ["8"]), ("--ep 2", ["--expert-parallel"]),
          ("--vpp 2", ["--virtual-pipeline"]), ("--schedule interleaved --pp 4", ["--virtual-pipeline"]), ("--zero 4", ["--zero '4'"]),
          ("--zero 2 --sharding ddp", ["--zero"]), ("--mfu 45", ["say 45%"]), ("--mfu nan", ["--mfu"]), ("--sequence 0", ["--sequence"]),
          ("--sequence 1e30", ["--sequence"]), ("--micro-batch -1", ["--micro-batch"]), ("--optimizer adamv", ["Did you mean adamw"]),
          ("--stack megatrn", ["Did you mean megatron"]), ("--precision fp31", ["--precision"]), ("--usable 80Gb", ["bits"]),
          ("--usable 200GB", ["--usable"]), ("--gbs 100 --mbs 3", ["--global-batch"]), ("--offload disc", ["--offload"]),
          ("--task lora --lora-rank 0", ["--lora-rank"]), ("--lora-rank 8 --task full", ["--lora-rank"]),
          ("--tokens -5", ["--tokens"]), ("--pcie 64GB", ["not a rate"]), ("--hybrid-shard 3 --zero 3 --dp 8", ["--hybrid-shard"])]],
    dict(name="train without a model", args="train --on 8xH100", status=2, err_has=["MODEL is missing"]),
    dict(name="train on an unknown card", args="train gpt2 --on 8xH1000X", status=2, err_has=["H1000X"]),
    dict(name="train on no card", args="train gpt2 --on 0xH100", status=2, err_has=["0"]),
    dict(name="train on a million nodes", args="train gpt2 --on 99999999x8xH100", status=2, err_has=["99999999"]),
    dict(name="train on this machine without GPU", args="train gpt2 --on local", status=3, err_has=["GPU"]),
    dict(name="train, two words", args="train gpt2 gpt2", status=2, err_has=["unexpected word 'gpt2'"]),
    dict(name="train, two models", args="train gpt2 --model gpt2", status=2, err_has=["second model"]),
    dict(name="experts do not divide", args="train mistralai/Mixtral-8x7B-v0.1 --on 8xH100 --ep 3", status=2, err_has=["--expert-parallel", "8"]),
    dict(name="train explained", args="train meta-llama/Llama-3.1-8B --on 8xH100 --stack fsdp --explain", match=[r" = [0-9·]+.* = [0-9,]+"]),
    dict(name="train in steps", args="train 7e9 --textbook --steps", out=["1.", "2."]),

    # --- fit ---
    dict(name="fit", args="fit meta-llama/Llama-3.1-70B --on 8xH100", out=["70.55 B parameters", "QLoRA", "Next:"]),
    dict(name="fit nothing", args="fit meta-llama/Llama-3.1-70B --on 1x1GiB", status=1),
    dict(name="fit without a model", args="fit --on 1xRTX4090", out=["largest", "1xRTX4090"]),
    dict(name="fit without a machine", args="fit meta-llama/Llama-3.1-8B", status=2, err_has=["--on is missing"]),
    dict(name="fit of an unknown model", args="fit llama-3.1-70 --on 8xH100", status=2,
         err="unknown model 'llama-3.1-70'. Did you mean meta-llama/Llama-3.1-70B? (vram models lists all)"),
    dict(name="fit on an unknown card", args="fit gpt2 --on 8xH1000X", status=2, err_has=["H1000X"]),
    dict(name="fit with a sequence of zero", args="fit gpt2 --on 8xH100 --sequence 0", status=2, err_has=["--sequence"]),
    dict(name="fit takes no tensor parallel", args="fit gpt2 --on 8xH100 --tp 2", status=2, err_has=["belongs to vram train, vram serve"]),

    # --- serve ---
    *[dict(name=f"serve refuses {options}", args=f"serve meta-llama/Llama-3.1-8B --on 8xH100 {options}", status=2, err_has=pieces)
      for options, pieces in [
          ("--tp 3", ["--tensor-parallel", "3"]), ("--tp 16", ["--tensor-parallel"]), ("--context 0", ["--context"]),
          ("--concurrency 0", ["--concurrency"]), ("--kv-dtype fp9", ["--kv-dtype"]), ("--weights-dtype int5", ["--weights-dtype"]),
          ("--gpu-memory-utilization 1.5", ["--gpu-memory-utilization"]), ("--gpu-memory-utilization 90", ["say 90%"]),
          ("--reserve 1GiB --reserve-ratio 20%", ["second reserve"]), ("--reserve 1Gb", ["bits"]), ("--weights -1GB", ["--weights"]),
          ("--kv-block 0", ["--kv-block"]), ("--zero 3", ["belongs to vram train"])]],
    dict(name="serve without a machine", args="serve gpt2", status=2, err_has=["--on is missing"]),
    dict(name="serve does not fit", args="serve meta-llama/Llama-3.1-70B --on 1xRTX4090", status=1),

    # --- sheet ---
    dict(name="sheet", args="sheet meta-llama/Llama-3.1-8B --on 8xH100 --tokens 1T --price 2",
         out=["1. Training memory", "2. Training FLOPs", "3. Inference", "Assumed", "vram train meta-llama/Llama-3.1-8B --on 8xH100"],
         match=[r"^Training fits", r"^Serving fits: K = [\d,]+", r"adamw states: .*8,030,261,248"]),
    dict(name="sheet writes a page", args="sheet 7B --on 8xH100 --output a.html", out=["a.html: "],
         leaves={"a.html": ["<!DOCTYPE html>", "</html>", "three accounts"]}),
    dict(name="sheet writes Markdown by the ending", args="sheet 7B --on 8xH100 --output a.md --lang zh",
         leaves={"a.md": ["# ", "| --- |", "三本账"]}),
    dict(name="sheet to standard output as Markdown", args="sheet 7B --on 8xH100 --format markdown", out=["# 7.00 B on 8xH100"], wide=True),
    dict(name="sheet that does not fit", args="sheet 70B --on 4x80GB", status=1, out=["Training does not fit", "No time answer"]),
    dict(name="sheet form unknown", args="sheet 7B --on 8xH100 --format pdf", status=2,
         err_has=["--format 'pdf' is not known here; accepted: text, markdown or html"]),
    dict(name="sheet without a machine", args="sheet 7B", status=2, err_has=["--on"]),
    dict(name="sheet into no folder", args="sheet 7B --on 8xH100 --output no/a.html", status=3, err_has=["no/a.html"]),
    dict(name="sheet as JSON has no form", args="sheet 7B --on 8xH100 --json --output a.html", status=2, err_has=["--output has no meaning with --json"]),
    # --- diff ---
    dict(name="diff of job files", args="diff a.yaml b.json", status=0,
         files={"a.yaml": "model: 7B\non: 64x80GB\nzero: 1\ntextbook: true\n",
                "b.json": '{"model": "7B", "on": "64x80GB", "zero": 3, "textbook": true}'},
         out=["--zero", "From A to B the peak of a card goes from", "both fit"]),
    dict(name="diff of a file and the same with a change", args="diff a.yaml 'a.yaml --micro-batch 4' --json",
         files={"a.yaml": "model: meta-llama/Llama-3.1-8B\non: 8xH100\nzero: 3\nrecompute: full\n"},
         json={"said[0].field": "micro_batch", "said[0].b": "4", "of": "train", "b_fits": True}),
    dict(name="diff of services", args="diff serve '--kv-dtype bf16' '--kv-dtype fp8' --model meta-llama/Llama-3.1-8B --on 1xH100 --json",
         json={"quantities.cache.kv_bytes_per_token.delta": -65536.0, "of": "serve"}),
    dict(name="diff of the same", args="diff '7B --on 8xH100 --zero 3' '7B --zero 3 --on 8xH100'", out=["Nothing differs"]),
    dict(name="diff whose second does not fit", args="diff '--zero 3' '--zero 0' --model 7B --on 8xH100", status=1, out=["A fits, B does not"]),
    dict(name="diff to a page", args="diff '--zero 3' '--zero 2' --model 7B --on 8xH100 --output d.html", leaves={"d.html": ["<html", "--zero 2"]},
         status=0),
    dict(name="diff of one", args="diff a.yaml", status=2, err_has=["compares two jobs, not 1"]),
    dict(name="diff of three", args="diff 7B 8B 9B", status=2, err_has=["compares two jobs, not 3"]),
    dict(name="diff names the side", args="diff '7B --on 8xH100' '7B --on 8xH1000'", status=2, err_has=["B: ", "8xH1000"]),
    dict(name="diff with a typing error in a side", args="diff '7B --on 8xH100' '7B --on 8xH100 --zer 3'", status=2,
         err_has=["B: unknown option '--zer'. Did you mean --zero?"]),
    dict(name="diff of kinds", args="diff 'train 7B --on 8xH100' 'serve 7B --on 8xH100'", status=2, err_has=["one kind"]),
    dict(name="diff of fields of both", args="diff '7B --on 8xH100 --zero 3' '7B --on 8xH100 --context 8k'", status=2, err_has=["vram diff train A B"]),
    dict(name="diff of a missing file", args="diff a.yaml b.yaml", status=3, err_has=["a.yaml"]),
    # --- tiers ---
    dict(name="tiers of a machine", args="tiers --on 8xH100", out=["registers", "device memory", "host link", "NVMe", "\u00d7"]),
    dict(name="tiers of stores", args="tiers", out=["3FS", "HDFS", "S3", "Lustre", "GPFS"]),
    dict(name="tiers of a checkpoint", args="tiers --checkpoint 40TB --write 1TB/s", out=["takes 40.00 s at 1 TB/s"]),
    dict(name="tiers of an interval", args="tiers --checkpoint 40TB --write 1TB/s --mtbf 3h --restart 0 --json",
         near={"checkpoint.chosen.interval.young_seconds": (929.516, 1e-5)}),
    dict(name="tiers of an offload that stalls", args="tiers 7e9 --on 1xH100 --offload optimizer --sequence 512 --textbook", status=1, out=["stalls"]),
    dict(name="tiers with a store of the user's own", args="tiers --checkpoint 1TB --store ours --rows r.toml --json",
         files={"r.toml": "[[store]]\nid = \"ours\"\nread_gb = 10\nwrite_gb = 4\n"}, near={"checkpoint.chosen.write_seconds": (250, 1e-12)}),
    dict(name="tiers of an unknown store", args="tiers --checkpoint 1TB --store lustr", status=2,
         err_has=["--store 'lustr' is no known store", "Did you mean lustre?"]),
    dict(name="tiers with bits for bytes", args="tiers --checkpoint 40Tb", status=2, err_has=["--checkpoint"]),
    dict(name="tiers with a rate for a size", args="tiers --checkpoint 1TB/s", status=2, err_has=["--checkpoint"]),
    dict(name="tiers with rows of several kinds", args="tiers --rows r.toml", status=2,
         files={"r.toml": "[[store]]\nid = \"a\"\n[[constant]]\nid = \"b\"\n"}, err_has=["rows of several kinds"]),
    dict(name="tiers with a bad store row", args="tiers --rows r.toml", status=2,
         files={"r.toml": "[[store]]\nid = \"a\"\nread_gb = 0\nwrite_gb = 1\n"}, err_has=["r.toml:", "read_gb"]),
]
