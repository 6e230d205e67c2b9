"""Which columns of a file count its rows, and what it means where they start again; the same for every format."""
