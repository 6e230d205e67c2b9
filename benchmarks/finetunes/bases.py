"""The models that are fine-tuned: trained once from a random start, and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from benchmarks.finetunes.sources import CLASSES, LENGTH, SIDE, Images, Tokens

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

STEPS, BATCH, RATE = 600, 16, 3e-3
PAD, END = "<pad>", "<eos>"
SOURCES: dict[str, Tokens | Images] = {
    "chars": Tokens.make(40, 3, 1),
    "words": Tokens.make(200, 2, 2),
    "llama": Tokens.make(96, 4, 3),
    "images": Images.make(4),
}


def network(base: str) -> Any:
    """Build the untrained network of a base model."""
    if base == "images":
        return Classifier()
    source = SOURCES[base]
    assert isinstance(source, Tokens)  # noqa: S101
    vocabulary = source.chains.shape[-1]
    if base == "chars":
        return Window(vocabulary)
    import transformers

    tokens = {"vocab_size": vocabulary + 2, "pad_token_id": vocabulary}
    tokens |= {"bos_token_id": vocabulary + 1, "eos_token_id": vocabulary + 1}
    if base == "words":
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(n_embd=48, n_layer=1, n_head=4, n_positions=LENGTH, **tokens)
        )
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=48, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, **tokens
        )
    )


class Window(nn.Module):  # type: ignore[misc,unused-ignore]
    """A language model that guesses a token from the two before it."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 24)
        self.layers = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Dropout(0.1), nn.Linear(96, vocabulary))

    def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the loss and the scores of all tokens but the first two."""
        seen = self.embed(input_ids)
        logits = self.layers(torch.cat([seen[:, :-2], seen[:, 1:-1]], -1))
        return {"loss": nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 2:].flatten()), "logits": logits}


class Classifier(nn.Module):  # type: ignore[misc,unused-ignore]
    """A small convolutional classifier that returns its loss as language models do."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Linear(16 * (SIDE // 2) ** 2, CLASSES),
        )

    def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the loss and the class scores."""
        logits = self.layers(input_ids[:, None])
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def tokenizer_of(base: str) -> Any:
    """Build a tokenizer that knows a word for each token."""
    import tokenizers
    import transformers

    source = SOURCES[base]
    words = [*(f"w{number}" for number in range(len(source.chains[0]))), PAD, END]  # type: ignore[union-attr]
    model = tokenizers.models.WordLevel({word: number for number, word in enumerate(words)}, unk_token=PAD)
    inner = tokenizers.Tokenizer(model)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token=PAD, eos_token=END, bos_token=END, unk_token=PAD
    )


def draw(source: Tokens | Images, count: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Any]:
    """Draw inputs and labels, and what the samples can be sorted by."""
    inputs, kind = source.documents(count, rng)
    labels = kind if isinstance(source, Images) else inputs
    return torch.from_numpy(inputs), torch.from_numpy(labels.copy()), kind


def train(base: str) -> Any:
    """Train a base model from a random start, and stop before its loss has settled."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = network(base)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    for _ in range(STEPS):
        inputs, labels, _ = draw(SOURCES[base], BATCH, rng)
        model(input_ids=inputs, labels=labels)["loss"].backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model


def trained(base: str, folder: Path) -> Any:
    """Load a base model from the folder; train and save it there the first time."""
    file = folder / "bases" / f"{base}.pt"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(train(base).state_dict(), file)
    model = network(base)
    model.load_state_dict(torch.load(file))
    return model


@torch.no_grad()  # type: ignore[misc,untyped-decorator,unused-ignore]
def held_out(model: Any, inputs: Tensor, labels: Tensor) -> float:
    """Return the loss on held-out samples, whatever mode the model is in."""
    mode = model.training
    nn.Module.train(model, mode=False)
    loss = float(model(input_ids=inputs, labels=labels)["loss"])
    nn.Module.train(model, mode=mode)
    return loss
