"""Default screens as text files, one of each kind: `python -m tests.screens` writes them anew; read what changed."""
