"""Tests of the callbacks, with the real trainers where they are installed."""
