"""`python -m stabtree`."""

from stabtree.cli import entry

if __name__ == "__main__":
    entry()
