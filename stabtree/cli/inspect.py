"""placeholder"""
from stabtree.cli.options import Paths
def inspect(paths: Paths) -> None:
    """Show how a file was read."""
