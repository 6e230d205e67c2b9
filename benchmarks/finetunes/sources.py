"""Where the data come from: Markov sources of tokens, and images of noisy patterns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LENGTH = 24
SIDE, CLASSES = 12, 10


@dataclass(frozen=True)
class Tokens:
    """Documents of a few topics, each topic a Markov chain over the vocabulary.

    Attributes:
        chains: the cumulative transition probabilities, of shape (topics, vocabulary, vocabulary).
        spread: up to this share of a document's tokens is drawn at random, so that documents differ in difficulty.
    """

    chains: NDArray[np.float64]
    spread: float = 0.4

    @classmethod
    def make(cls, vocabulary: int, topics: int, seed: int) -> Tokens:
        """Draw chains whose tokens are as unequally frequent as words are."""
        rng = np.random.default_rng(seed)
        frequent = 1 / (np.arange(vocabulary) + 3)
        weights = rng.dirichlet(np.full(vocabulary, 0.08), (topics, vocabulary)) * frequent[rng.permutation(vocabulary)]
        return cls(np.cumsum(weights / weights.sum(-1, keepdims=True), -1))

    def shifted(self, amount: float, seed: int) -> Tokens:
        """Return a source whose chains are these, mixed with others."""
        vocabulary = self.chains.shape[-1]
        other = Tokens.make(vocabulary, len(self.chains), seed)
        return replace(self, chains=(1 - amount) * self.chains + amount * other.chains)

    def documents(self, count: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw documents, and the topic of each."""
        topics, vocabulary = self.chains.shape[:2]
        topic = rng.integers(topics, size=count)
        noisy = rng.random((count, LENGTH)) < rng.random((count, 1)) * self.spread
        drawn = rng.random((count, LENGTH))
        text = rng.integers(vocabulary, size=(count, LENGTH))
        for place in range(1, LENGTH):
            chain = self.chains[topic, text[:, place - 1]]
            following = (chain < drawn[:, place, None]).sum(-1).clip(max=vocabulary - 1)
            text[:, place] = np.where(noisy[:, place], text[:, place], following)
        return text, topic


@dataclass(frozen=True)
class Images:
    """Noisy patterns, one a class.

    Attributes:
        patterns: the clean image of each class.
        noise: the standard deviation of what is added to every pixel.
    """

    patterns: NDArray[np.float64]
    noise: float = 4.5

    @classmethod
    def make(cls, seed: int) -> Images:
        """Draw smooth patterns."""
        rough = np.random.default_rng(seed).normal(size=(CLASSES, SIDE // 3, SIDE // 3))
        return cls(rough.repeat(3, 1).repeat(3, 2))

    def shifted(self, amount: float, seed: int) -> Images:
        """Return a source whose patterns are these, mixed with others."""
        other = Images.make(seed).patterns
        return replace(self, patterns=((1 - amount) * self.patterns + amount * other))

    def documents(self, count: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Draw images, and the class of each."""
        label = rng.integers(CLASSES, size=count)
        images = self.patterns[label] + rng.normal(scale=self.noise, size=(count, SIDE, SIDE))
        return images.astype(np.float32), label
