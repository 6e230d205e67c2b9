"""Runs made close to one threshold each, to hold it from both sides."""
from __future__ import annotations
PINS = ()
