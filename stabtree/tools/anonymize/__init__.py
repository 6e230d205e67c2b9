"""Logs without names: numbers and columns stay; what may identify people, machines and places is replaced."""
