"""Logs without names: numbers and columns stay, what may tell of people and places goes."""
