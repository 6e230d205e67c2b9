"""The callback in TRL's trainers: fine-tuning, preferences and reinforcement, of a tiny model and made-up words."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'stabtree[test-integrations]'")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the libraries say of themselves when they are imported
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: TRL needs it")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from stabtree.integrations import HuggingFaceCallback

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run

pytestmark = pytest.mark.filterwarnings("ignore")  # the frameworks warn of each other

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PROMPTS = [" ".join(LETTERS[(begin + place) % 26] for place in range(10)) for begin in range(64)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a model and a tokenizer whose words are the letters: TRL reads the reference model from there."""
    folder = str(tmp_path_factory.mktemp("tiny"))
    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    words = [*special.values(), *LETTERS]
    known = {word: place for place, word in enumerate(words)}
    made = Tokenizer(models.WordLevel(known, special["unk_token"]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=made, **special).save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def trained(folder: Path, trainer: Any, config: Any, tiny: str, data: dict[str, list[str]], **options: Any) -> Run:
    """The run that a trainer of TRL wrote, in which nothing is wrong."""
    quiet = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "logging_steps": 1, "save_strategy": "no"}
    args = config(output_dir=str(folder), bf16=False, learning_rate=1e-3, max_steps=6, **quiet, **options)
    more = {"reward_funcs": count} if trainer is trl.GRPOTrainer else {}
    trainer(
        model=tiny, args=args, train_dataset=datasets.Dataset.from_dict(data),
        callbacks=[HuggingFaceCallback(folder / "run.jsonl", stats_every=3)], **more,
    ).train()  # fmt: skip
    run = load_run(folder / "run.jsonl")
    assert all(finding.leaf.severity == "note" for finding in diagnose(run).findings)
    assert run.series["loss"].steps.tolist() == list(range(1, 7))
    return run


def count(completions: list[str], **_: Any) -> list[float]:
    """A reward: how often a letter stands in an answer."""
    return [float(answer.count("a")) for answer in completions]


def test_fine_tuning_is_written(tmp_path: Path, tiny: str) -> None:
    """The entropy and the accuracy of the tokens come with the loss."""
    run = trained(tmp_path, trl.SFTTrainer, trl.SFTConfig, tiny, {"text": PROMPTS})
    assert {"loss", "grad_norm", "lr", "entropy"} <= run.series.keys()


def test_reinforcement_is_written(tmp_path: Path, tiny: str) -> None:
    """The reward, its spread, the divergence and the clipping of GRPO are read under their names."""
    options = {"num_generations": 4, "per_device_train_batch_size": 4, "max_completion_length": 8, "beta": 0.04}
    run = trained(tmp_path, trl.GRPOTrainer, trl.GRPOConfig, tiny, {"prompt": PROMPTS}, **options)
    wanted = {"reward", "reward_function/count", "reward_std", "frac_reward_zero_std", "kl", "entropy", "clip_ratio"}
    assert wanted <= run.series.keys()
    assert run.config["max_completion_length"].value == 8


def test_preferences_are_written(tmp_path: Path, tiny: str) -> None:
    """The margin and the accuracy of the rewards of DPO are read under their names."""
    pairs = {"prompt": PROMPTS, "chosen": [" a b c"] * 64, "rejected": [" x y z"] * 64}
    run = trained(tmp_path, trl.DPOTrainer, trl.DPOConfig, tiny, pairs)
    assert {"loss", "preference_margin", "preference_accuracy"} <= run.series.keys()
