"""Write all screens anew."""

from tests.screens.screens import COMMANDS, FOLDER, screen

for name in COMMANDS:
    (FOLDER / f"{name}.txt").write_text(screen(name), encoding="utf-8")
