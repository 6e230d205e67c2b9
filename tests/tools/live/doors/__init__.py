"""Tests of what takes the rows of other trainers and loggers."""
