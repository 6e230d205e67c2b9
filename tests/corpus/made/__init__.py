"""Runs made close to the documents' own numbers, to hold each from both sides; other numbers are held by real runs."""

from __future__ import annotations

from tests.corpus.made.documents import HOLDS
from tests.corpus.made.hold import pins

PINS = tuple(pins(HOLDS))
