"""Tests of predicates."""
