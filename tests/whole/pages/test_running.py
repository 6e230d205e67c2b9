"""The harness itself: what it runs, what it tells, and what it does not let pass."""

from __future__ import annotations

import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.whole.pages.__main__ import count, main
from tests.whole.pages.blocks import blocks_of
from tests.whole.pages.running import Report, run_page

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the blocks are for a POSIX shell")


def ran(folder: Path, text: str) -> Report:
    """The report of a page of a text."""
    page = folder / "some-page.md"
    page.write_text(dedent(text), encoding="utf-8")
    return run_page(page)


def test_a_console_block_shows_what_its_commands_print(tmp_path: Path) -> None:
    """Several commands, a continued one, one that fails, and standard error; nothing is to be mended."""
    report = ran(
        tmp_path,
        """\
        ```console
        $ echo one; echo two >&2
        one
        two
        $ printf '%s\\n' \\
        >   three
        three
        $ false
        $ ls fixtures | head -n 1
        cases.py
        ```
        """,
    )
    assert (report.wrong, report.ran, report.text) == ([], 1, report.page.read_text(encoding="utf-8"))


def test_another_output_is_told_and_written_anew(tmp_path: Path) -> None:
    """Where it stands, also inside of a directive and indented; what is around it stays."""
    report = ran(
        tmp_path,
        """\
        Text.

        ````{tab-set}
        - one

          ```console
          $ seq 3
          1
          ```

          ```console
          $ echo now
          then
          and then
          ```
        ````
        ```console
        $ echo kept
        kept
        ```
        Text.
        """,
    )
    assert "some-page.md:6: it prints\n$ seq 3\n1\n2\n3\n" in report.wrong[0]
    assert len(report.wrong) == 2
    before = report.page.read_text(encoding="utf-8")
    assert report.text == before.replace("  1\n", "  1\n  2\n  3\n").replace("  then\n  and then\n", "  now\n")
    assert main(["--write", str(report.page)]) == 1
    assert report.page.read_text(encoding="utf-8") == report.text
    assert main([str(report.page)]) == 0


def test_the_time_of_day_is_the_moments(tmp_path: Path) -> None:
    """A date with its time, or a duration, may be any; what stands on the page is left there."""
    text = "```console\n$ echo \"$(date -u '+%F %T') {}\"\n2020-01-01 00:00:00 {}\n```\n"
    assert not ran(tmp_path, text.format("took 3 s", "took 0.25 s")).wrong
    assert ran(tmp_path, text.format("took 3 steps", "took 4 steps")).wrong


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("```bash\ntrue\nfalse\ntrue\n```", "exit code 1"),
        ("<!-- exits 1 -->\n```bash\ntrue\n```", "exit code 0"),
        ("<!-- exits 1 -->\n```bash\nfalse\nfalse\n```", "a block of one command"),
        ("```python\nimport warnings\nwarnings.warn('old')\n```", "UserWarning: old"),
        ("```python\n1 / 0\n```", "some-page.md:1"),
        ("```\nls\n```", "language ''"),
        ("```shell\nls\n```", "language 'shell'"),
        ("```{code-block} bash\nls\n```", "a plain fence"),
        ("<!-- not run -->\n```bash\nls\n```", "not run, but why?"),
        ("<!-- run by tests/none.py -->\n```bash\nls\n```", "tests/none.py runs nothing of this page"),
        ("<!-- run by tests/whole/test_layers.py -->\n```bash\nls\n```", "test_layers.py runs nothing of this page"),
        ("```python\nprint(1)\n```\n\n<!-- prints -->\n```text\n2\n```", "it prints\n1"),
        ("<!-- before: false -->", "exit code 1"),
    ],
)
def test_what_is_wrong_with_a_block_is_told(block: str, told: str, tmp_path: Path) -> None:
    """Once, and with what came out."""
    (wrong,) = ran(tmp_path, f"{block}\n").wrong
    assert told in wrong


def test_blocks_of_a_page_share_a_folder_and_names(tmp_path: Path) -> None:
    """Hidden commands, files that the page shows, shell and Python see each other's work, in the page's order."""
    report = ran(
        tmp_path,
        """\
        <!-- before:
        mkdir runs
        echo 1 > runs/hidden
        -->
        <!-- file: runs/shown.csv -->
        ```csv
        step,loss
        ```

        ```bash
        cat runs/hidden runs/shown.csv > both
        ```
        ```python
        import pathlib
        text = pathlib.Path("both").read_text(encoding="utf-8")
        ```
        ```python
        print(text.split())
        ```

        <!-- prints -->
        ```text
        ['1', 'step,loss']
        ```
        <!-- exits 3 -->
        ```bash
        exit \\
          3
        ```
        """,
    )
    assert (report.wrong, report.ran) == ([], 5)


def test_a_picture_is_what_the_commands_draw(tmp_path: Path) -> None:
    """Another one is told, and written where it lies; one that nothing draws is told."""
    text = "```bash\necho one > a.svg\n```\n<!-- picture: {} = kept.svg -->\n![A curve](kept.svg)\n"
    assert "b.svg was not made" in ran(tmp_path, text.format("b.svg")).wrong[0]
    report = ran(tmp_path, text.format("a.svg"))
    assert "kept.svg is another picture" in report.wrong[0]
    assert main(["--write", str(report.page)]) == 1
    assert (tmp_path / "kept.svg").read_text(encoding="utf-8") == "one\n"
    assert main([str(report.page)]) == 0


def test_what_is_not_run_is_counted_with_its_reason(tmp_path: Path) -> None:
    """A test of its own counts as run; a comment counts for the block below it alone."""
    report = ran(
        tmp_path,
        """\
        <!-- not run: a cluster -->
        ```bash
        false
        ```

        <!-- run by tests/whole/pages/test_running.py -->
        ```python
        1 / 0
        ```

        ```bash
        true
        ```
        ```yaml
        - shown
        ```
        """,
    )
    assert report.wrong == []
    assert [line.partition(": ")[2] for line in report.left] == [
        "a cluster",
        "run by tests/whole/pages/test_running.py",
    ]
    assert count([report]) == "2 blocks run (1 by tests of their own), 1 not"


def test_a_longer_fence_holds_shorter_ones() -> None:
    """A page that shows Markdown shows it as text."""
    (block,) = blocks_of("````markdown\n```bash\nfalse\n```\n````\n")
    assert (block.language, block.line, block.text) == ("markdown", 1, "```bash\nfalse\n```\n")
