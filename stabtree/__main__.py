"""`python -m stabtree`."""

from stabtree.cli import main

if __name__ == "__main__":
    main()
