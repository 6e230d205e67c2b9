"""What a written page shows is run: every console, bash, sh and python block of every one.

The blocks of a page are run in their order, in one folder made for it, in which the checkout's `fixtures/`, `docs/`,
`trees/` and the like can be read. `python -m tests.whole.pages` runs them all and counts; with `--write` it writes
anew what the console blocks show (`make readme`). What a comment right above a block, or above another comment, says:

    <!-- not run: why -->          it can't be run here: a cluster, a service, a GPU
    <!-- run by tests/x.py -->     that test runs it in another way; it must name the page
    <!-- file: NAME -->            the block, of any language, is the file NAME from here on
    <!-- exits 1 -->               the one command of this bash or sh block ends so, not with 0
    <!-- prints -->                this text block is what the python block before it prints

`<!-- before: COMMANDS -->` anywhere is run in the folder without being shown: it prepares what follows.
`<!-- picture: FILE = PATH -->` above a picture: it is the FILE that the commands so far made; PATH is from the page.
"""
