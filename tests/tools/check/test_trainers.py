"""One small training, written as each trainer writes it: the same settings come out under the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common import yaml12
from stabtree.tools.check.load import load_config
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = """\
### axolotl tune.yml
base_model: some/model
load_in_4bit: true
datasets: [{path: some/data, type: alpaca}]
sequence_len: 2048
sample_packing: true
train_on_inputs: false
adapter: qlora
lora_r: 16
lora_alpha: 32
wandb_project: tuning
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 3
optimizer: paged_adamw_8bit
lr_scheduler: cosine
learning_rate: 1.5e-4
bf16: true
fp16:
tf32: false
gradient_checkpointing: true
logging_steps: 1
warmup_ratio: 0.05
evals_per_epoch: 4
saves_per_epoch: 0
weight_decay: 0.01
rl: grpo
trl: {num_generations: 8, beta: 0.04, max_completion_length: 256}
=> framework: axolotl, init_from: some/model, adapter: qlora, lora_rank: 16, lora_alpha: 32, accumulation_steps: 4,
micro_batch_size: 2, epochs: 3, optimizer: paged_adamw_8bit, lr_schedule: cosine, lr: 0.00015, dtype: bf16, mixed:
true, gradient_checkpointing: true, log_interval: 1, warmup_ratio: 0.05, eval_strategy: epoch, save_strategy: no,
weight_decay: 0.01, task: grpo, num_generations: 8, beta: 0.04, max_completion_length: 256, max_seq_length: 2048,
sample_packing: true, train_on_inputs: false
### llamafactory pt.yaml
model_name_or_path: some/model
stage: pt
finetuning_type: lora
quantization_bit: 4
lora_rank: 8
template: plain
cutoff_len: 1024
packing: true
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
max_steps: 4000
lr_scheduler_type: cosine
warmup_steps: 0.1
pure_bf16: true
logging_steps: 10
save_steps: 0.05
eval_strategy: steps
eval_steps: 250
=> framework: llamafactory, init_from: some/model, task: pretrain, adapter: qlora, lora_rank: 8, max_seq_length: 1024,
sample_packing: true, micro_batch_size: 1, accumulation_steps: 8, lr: 0.0001, max_steps: 4000, lr_schedule: cosine,
warmup_ratio: 0.1, log_interval: 10, dtype: bf16, mixed: false, weights_dtype: bf16, checkpoint_every: 200,
eval_strategy: steps, eval_every: 250
### deepspeed ds.json
{"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 4,
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": "auto"}},
 "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 500, "total_num_steps": 20000}},
 "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 12, "loss_scale_window": 500, "min_loss_scale": 1},
 "bf16": {"enabled": false}, "communication_data_type": "fp16",
 "zero_optimization": {"stage": 2, "overlap_comm": true}, "gradient_clipping": 1.0, "steps_per_print": 20}
=> framework: deepspeed, batch_size: 256, micro_batch_size: 8, accumulation_steps: 4, optimizer: adamw, lr: 0.0003,
beta1: 0.9, beta2: 0.95, epsilon: 1e-08, lr_schedule: warmupdecaylr, warmup_steps: 500, schedule_steps: 20000,
dtype: fp16, mixed: true, loss_scaling: dynamic, initial_loss_scale: 4096, scale_window: 500, min_loss_scale: 1,
grad_reduce_dtype: fp16, overlap_comm: true, grad_clip: 1, log_interval: 20
### lightning config.yaml
seed_everything: 7
trainer:
  accelerator: gpu
  precision: 16-true
  max_epochs: 5
  max_steps: -1
  val_check_interval: 0.25
  log_every_n_steps: 25
  accumulate_grad_batches: 2
  gradient_clip_val: 0.5
  gradient_clip_algorithm: value
  logger: {class_path: lightning.pytorch.loggers.CSVLogger, init_args: {save_dir: out}}
  callbacks:
    - class_path: lightning.pytorch.callbacks.LearningRateMonitor
    - class_path: lightning.pytorch.callbacks.ModelCheckpoint
      init_args: {every_n_train_steps: 200, save_top_k: 3}
model: {class_path: nets.Net, init_args: {lr: 0.5, width: 64}}
data: {class_path: nets.Data, init_args: {batch_size: 16}}
optimizer: {class_path: torch.optim.Adam, init_args: {lr: 2e-3, betas: [0.9, 0.99]}}
lr_scheduler: {class_path: torch.optim.lr_scheduler.CosineAnnealingLR, init_args: {T_max: 900, eta_min: 1e-5}}
=> framework: lightning, seed: 7, dtype: fp16, mixed: false, weights_dtype: fp16, loss_scaling: none, epochs: 5,
log_interval: 25, accumulation_steps: 2, grad_clip: 0.5, grad_clip_by: value, logs: csv, checkpoint_every: 200,
save_total_limit: 3, micro_batch_size: 16, optimizer: adam, lr: 0.002, beta1: 0.9, beta2: 0.99, lr_schedule:
cosineannealinglr, schedule_steps: 900, min_lr: 1e-05
### hydra config.yaml
training:
  max_steps: 3000
  precision: bf16-mixed
  batch_size: ${data.batch}
  seed: 11
optimizer:
  _target_: torch.optim.AdamW
  lr: 6e-4
  weight_decay: ???
scheduler: {_target_: torch.optim.lr_scheduler.OneCycleLR, total_steps: 3000}
checkpoint: {every_n_steps: 300}
=> max_steps: 3000, dtype: bf16, mixed: true, seed: 11, optimizer: adamw, lr: 0.0006, lr_schedule: onecyclelr,
schedule_steps: 3000, checkpoint_every: 300
### torchtune lora.yaml
tokenizer: {_component_: torchtune.models.some_tokenizer, max_seq_len: 4096}
dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: true}
model: {_component_: torchtune.models.lora_some_8b, lora_rank: 8, lora_alpha: 16}
checkpointer: {_component_: torchtune.training.FullModelHFCheckpointer}
batch_size: 4
gradient_accumulation_steps: 1
epochs: 1
optimizer: {_component_: torch.optim.AdamW, lr: 3e-4}
lr_scheduler: {_component_: torchtune.modules.get_cosine_schedule_with_warmup, num_warmup_steps: 100}
profiler: {enabled: false, warmup_steps: 3}
dtype: bf16
log_every_n_steps: 1
=> framework: torchtune, adapter: lora, lora_rank: 8, lora_alpha: 16, epochs: 1, micro_batch_size: 4,
accumulation_steps: 1, optimizer: adamw, lr: 0.0003, log_interval: 1, lr_schedule: get_cosine_schedule_with_warmup,
warmup_steps: 100, dtype: bf16, mixed: false, weights_dtype: bf16, max_seq_length: 4096, sample_packing: true
### torchtitan train.toml
[metrics]
log_freq = 5
[optimizer]
name = "AdamW"
lr = 8e-4
eps = 1e-8
[lr_scheduler]
warmup_steps = 200
decay_type = "linear"
[training]
local_batch_size = 8
seq_len = 2048
max_norm = 1.0
steps = 1000
mixed_precision_param = "bfloat16"
mixed_precision_reduce = "float32"
[checkpoint]
enable = false
interval = 500
[validation]
enable = true
freq = 50
=> framework: torchtitan, log_interval: 5, optimizer: adamw, lr: 0.0008, epsilon: 1e-08, warmup_steps: 200,
lr_schedule: linear, micro_batch_size: 8, max_seq_length: 2048, grad_clip: 1, max_steps: 1000, weights_dtype: bf16,
grad_reduce_dtype: fp32, save_strategy: no, eval_every: 50
### fairseq base.yaml
common: {fp16: true, log_interval: 20, fp16_init_scale: 128}
dataset: {batch_size: 6}
distributed_training: {distributed_world_size: 4}
optimization: {max_update: 9000, lr: [0.0004], update_freq: [2], clip_norm: 0}
optimizer: {_name: adam, adam_betas: "(0.9,0.97)", adam_eps: 1e-06, weight_decay: 0.02}
lr_scheduler: {_name: polynomial_decay, warmup_updates: 300, total_num_update: 9000}
model: {_name: small, dropout: 0.1}
=> framework: fairseq, dropout: 0.1, dtype: fp16, mixed: true, loss_scaling: dynamic, initial_loss_scale: 128,
log_interval: 20, micro_batch_size: 6, world_size: 4, accumulation_steps: 2, batch_size: 48, max_steps: 9000, lr:
0.0004, grad_clip: 0, optimizer: adam, beta1: 0.9, beta2: 0.97, epsilon: 1e-06, weight_decay: 0.02, lr_schedule:
polynomial_decay, warmup_steps: 300, schedule_steps: 9000
### composer sft.yaml
global_seed: 5
max_duration: 3ep
eval_interval: 40ba
save_interval: 1ep
save_num_checkpoints_to_keep: -1
scheduler: {name: cosine_with_warmup, t_warmup: 0.06dur, alpha_f: 0.1}
optimizer: {name: decoupled_adamw, lr: 2.0e-5, betas: [0.9, 0.96], eps: 1.0e-8, weight_decay: 0.0}
algorithms: {gradient_clipping: {clipping_type: norm, clipping_threshold: 0.7}}
global_train_batch_size: 48
device_train_microbatch_size: 3
seed: ${global_seed}
precision: amp_bf16
=> framework: composer, seed: 5, epochs: 3, eval_every: 40, save_strategy: epoch, lr_schedule: cosine_with_warmup,
warmup_ratio: 0.06, optimizer: decoupled_adamw, lr: 2e-05, beta1: 0.9, beta2: 0.96, epsilon: 1e-08, weight_decay: 0,
grad_clip: 0.7, grad_clip_by: norm, batch_size: 48, micro_batch_size: 3, dtype: bf16
### verl ppo.yaml
data: {train_batch_size: 96, max_prompt_length: 256}
actor_rollout_ref:
  actor:
    optim:
      _target_: some.engine.OptimizerConfig
      lr: 2.0e-06
      lr_warmup_steps: -1
      lr_warmup_steps_ratio: 0.04
      betas: [0.9, 0.99]
      clip_grad: 0.8
      optimizer: adam
    clip_ratio: 0.2
  ref: {optim: {lr: 1.0}}
  rollout: {n: 12, temperature: 0.9, val_kwargs: {temperature: 0}}
critic: {optim: {lr: 1.0e-05}}
algorithm: {adv_estimator: grpo, kl_ctrl: {type: fixed}}
trainer: {total_epochs: 4, save_freq: -1, test_freq: 10, logger: [console, wandb]}
=> framework: verl, task: grpo, batch_size: 96, lr: 2e-06, warmup_ratio: 0.04, beta1: 0.9, beta2: 0.99, grad_clip: 0.8,
optimizer: adam, clip_epsilon: 0.2, num_generations: 12, temperature: 0.9, epochs: 4, save_strategy: no, eval_every:
10, logs: "console, wandb"
### trl grpo.yaml
model_name_or_path: some/model
dtype: bfloat16
use_peft: false
num_generations: 8
learning_rate: 1.0e-6
beta: 0.0
epsilon: 0.2
adam_epsilon: 1.0e-8
temperature: 0.9
bf16: true
max_length: 512
report_to: []
eval_strategy: "no"
eval_steps: 100
logging_nan_inf_filter: true
save_total_limit: 1
load_best_model_at_end: false
=> framework: trl, init_from: some/model, task: grpo, weights_dtype: bf16, adapter: full, num_generations: 8, lr:
1e-06, beta: 0, clip_epsilon: 0.2, epsilon: 1e-08, temperature: 0.9, dtype: bf16, mixed: true, logs: none,
eval_strategy: no, log_filters_nan: true, max_seq_length: 512, save_total_limit: 1, load_best: false
### megatron args.yaml
tensor_model_parallel_size: 2
fp16: true
loss_scale: 4096
global_batch_size: 512
micro_batch_size: 4
train_iters: 10000
lr_decay_style: cosine
lr_decay_iters: 9000
lr_warmup_fraction: 0.01
clip_grad: 1.0
adam_beta2: 0.95
min_lr: 1.0e-5
=> framework: megatron, dtype: fp16, mixed: true, loss_scaling: static, loss_scale: 4096, batch_size: 512,
micro_batch_size: 4, max_steps: 10000, lr_schedule: cosine, schedule_steps: 9000, warmup_ratio: 0.01, grad_clip: 1,
beta2: 0.95, min_lr: 1e-05
### wandb config.yaml
wandb_version: 1
_wandb: {value: {cli_version: 0.1}}
lr: {desc: null, value: 1e-3}
batch_size: {value: 64}
trainer/precision: {value: 32}
optimizer: {value: sgd}
=> lr: 0.001, batch_size: 64, dtype: fp32, mixed: false, optimizer: sgd
### trainer_state trainer_state.json
{"global_step": 200, "max_steps": 400, "num_train_epochs": 2, "train_batch_size": 8, "logging_steps": 10,
 "eval_steps": 500, "save_steps": 100, "log_history": [{"step": 10, "loss": 2.5, "learning_rate": 1e-3}]}
=> framework: huggingface, max_steps: 400, epochs: 2, micro_batch_size: 8, log_interval: 10
### manifest manifest.json
{"run_name": "a", "dtype": "bf16", "optimizer": {"name": "adamw", "lr": 3e-4}, "checkpoint_every": 50}
=> dtype: bf16, optimizer: adamw, lr: 0.0003, checkpoint_every: 50
"""
CASES: dict[str, tuple[str, str, str]] = {}
"""By trainer: the name of a file, what it holds, and the settings that come out."""
for _sample in SAMPLES.split("### ")[1:]:
    _head, _text = _sample.split("\n", 1)
    _trainer, _name = _head.split()
    CASES[_trainer] = (_name, *_text.split("\n=> "))  # type: ignore[assignment]


@pytest.mark.parametrize("trainer", CASES)
def test_all_that_a_trainer_says_is_read_and_nothing_else(tmp_path: Path, trainer: str) -> None:
    """Every setting comes out under its canonical name with its value, and none that is not there."""
    name, text, expected = CASES[trainer]
    run = load_config(write(tmp_path, text.lstrip("\n"), name))
    said = {key: one.value for key, one in run.config.items() if not one.source.startswith("default of ")}
    assert said == yaml12.parse(f"{{{expected}}}", trainer).value
    assert not run.series
    assert not run.notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Flags, modes, dtypes and sections say what they mean, and what is off or left open says nothing.
        ("fp16: true", {"dtype": "fp16", "mixed": True}),
        ("fp16: false\nbf16: true", {"dtype": "bf16", "mixed": True}),
        ("fp16: false\nbf16: false", {"dtype": None}),
        ("bf16: auto", {"dtype": None}),
        ("mixed_precision: 'no'", {"mixed": False}),
        ("mixed_precision: fp8", {"dtype": "fp8", "mixed": True}),
        ("precision: 32-true", {"dtype": "fp32", "mixed": False}),
        ("precision: 64-true", {"dtype": None}),
        ("precision: bf16", {"dtype": "bf16"}),
        ("dtype: float16", {"dtype": "fp16"}),
        ("torch_dtype: torch.bfloat16", {"dtype": None, "weights_dtype": "bf16"}),
        ("float16: true", {"dtype": "fp16", "mixed": False, "weights_dtype": "fp16"}),
        ("model: {dtype: bf16}", {"dtype": None, "weights_dtype": "bf16"}),
        ("bf16: {enabled: true, bf16_optimizer_states: true}", {"dtype": "bf16", "optimizer_state_dtype": "bf16"}),
        ("fp16: {enabled: false, loss_scale: 128}", {"dtype": None, "loss_scale": None}),
        ("fp16: {enabled: auto, loss_scale: 128}\nbf16: {enabled: true}", {"dtype": "bf16", "loss_scale": None}),
        # A scaler is off however that is spelled; a scale of 1 is none, and one that is null is not said.
        *(
            (f"dtype: fp16\n{text}", {"loss_scaling": scaling})
            for text, scaling in (
                ("loss_scaling: none", "none"),
                ("loss_scaling: false", "none"),
                ("grad_scaler: off", "none"),
                ("use_grad_scaler: false", "none"),
                ("grad_scaler: {enabled: false, init_scale: 65536}", "none"),
                ("training: {loss_scaler: disabled}", "none"),
                ("loss_scale: 1", "none"),
                ("loss_scaling: dynamic", "dynamic"),
                ("loss_scale: dynamic", "dynamic"),
                ("use_grad_scaler: true", "dynamic"),
                ("loss_scaling: 256", "static"),
                ("loss_scaling:", None),
                ("loss_scale: none", None),
            )
        ),
        # In bf16 what is said of the run itself counts, not what would count in fp16 alone.
        *(
            (f"bf16: true\n{text}", {"loss_scaling": scaling, "initial_loss_scale": None})
            for text, scaling in (
                ("loss_scaling: dynamic", "dynamic"),
                ("training: {use_grad_scaler: true}", "dynamic"),
                ("loss_scale: 128", "static"),
                ("loss_scaling: none", "none"),
                ("loss_scale: 0", None),
                ("fp16: true", None),
                ("fp16: {enabled: auto, loss_scale: 128, initial_scale_power: 8}", None),
                ("fp16_init_scale: 128", None),
            )
        ),
        # The batch is the product of its parts, where all are there; a bare one that is accumulated is a device's.
        ("micro_batch_size: 4\ngradient_accumulation_steps: 8", {"batch_size": None}),
        ("micro_batch_size: 4\ngradient_accumulation_steps: 8\nworld_size: 2", {"batch_size": 64}),
        ("batch_size: 4\ngrad_accum: 8", {"batch_size": None, "micro_batch_size": 4, "accumulation_steps": 8}),
        ("global_batch_size: 4\ngrad_accum: 2", {"batch_size": 4, "micro_batch_size": None}),
        # With `decay_lr` off the numbers of the schedule are no settings.
        (
            "decay_lr: false\nlr_decay_iters: 10\nwarmup_iters: 5\nmax_iters: 100",
            {"schedule_steps": None, "warmup_steps": None, "max_steps": 100},
        ),
        # The Hugging Face trainer stops at `max_steps`, however many epochs its arguments hold by default.
        ("per_device_train_batch_size: 1\nnum_train_epochs: 3\nmax_steps: 50", {"epochs": None, "max_steps": 50}),
        ("per_device_train_batch_size: 1\nnum_train_epochs: 3\nmax_steps: -1", {"epochs": 3, "max_steps": None}),
        # Of other settings than clipping -1 says that nothing is set.
        ("max_grad_norm: -1\nmax_steps: -1\nsave_total_limit: -1", {"grad_clip": -1, "save_total_limit": None}),
    ],
)
def test_a_setting_is_what_the_words_say(tmp_path: Path, text: str, expected: dict[str, object]) -> None:
    run = load_config(write(tmp_path, f"lr: 0.1\n{text}\n", "run.yaml"))
    assert {key: run.setting(key) for key in expected} == expected


def test_braces_in_yaml_are_yaml(tmp_path: Path) -> None:
    """A YAML file that is one object in braces may hold comments and commas at the end, as those of GPT-NeoX do."""
    run = load_config(write(tmp_path, '{\n  # a comment\n  "lr": 0.002,\n  "train-iters": 700,\n}\n', "run.yml"))
    assert {key: one.value for key, one in run.config.items()} == {"lr": 0.002, "max_steps": 700}
