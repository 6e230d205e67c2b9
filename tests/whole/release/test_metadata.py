"""What pyproject.toml, CITATION.cff and the changelog say of the project, each thing in one place."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

import stabtree
from release import licences
from release.changelog import VERDICTS, ChangelogError, released, section
from release.contents import INTO_WHEEL, sources
from tests.conftest import ROOT

CONFIG: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = CONFIG["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PYTHON = "Programming Language :: Python :: "
PYTHONS = [item.removeprefix(PYTHON) for item in PROJECT["classifiers"] if re.fullmatch(rf"{PYTHON}3\.\d+", item)]


def test_the_version_stands_once() -> None:
    """In the package; the build and the citation take it from there. The conda recipe needs what the project needs."""
    assert "version" in {*PROJECT["dynamic"]} - PROJECT.keys()
    assert CONFIG["tool"]["hatch"]["version"]["path"] == "stabtree/_version.py"
    assert CITATION["version"] == stabtree.__version__
    recipe = yaml.safe_load((ROOT / "release" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert "".join(recipe["requirements"]["run"][1:]).replace(" ", "") == "".join(PROJECT["dependencies"])


def test_python_has_no_upper_cap() -> None:
    """The classifiers name each minor version from the lowest on without a gap."""
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    minors = [int(version.removeprefix("3.")) for version in PYTHONS]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert CONFIG["tool"]["ruff"]["target-version"] == f"py3{minors[0]}"


def test_links_of_the_readme_work_where_it_is_alone() -> None:
    """On a registry's page each leads to the file of this release, a picture to its bytes; what is an address stays."""
    text = "![a](docs/a.svg) [b](docs/b.md#c) [d](https://e.org/f) [g](#h)\n"
    for item in CONFIG["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(item["pattern"], item["replacement"], text)
    repository = PROJECT["urls"]["Source"]
    raw = repository.replace("github.com", "raw.githubusercontent.com")
    wanted = f"![a]({raw}/v$HFPR_VERSION/docs/a.svg) [b]({repository}/blob/v$HFPR_VERSION/docs/b.md#c) "
    assert text == wanted + "[d](https://e.org/f) [g](#h)\n"


# ------------------------------------------------------------------ licences
def test_all_that_is_shipped_has_a_known_licence() -> None:
    """Each file of the wheel belongs to a work whose licence is listed, and whose text is shipped and declared."""
    shipped = [name for folder in INTO_WHEEL for name in sources(folder)]
    assert not [name for name in shipped if licences.work_of(name) is None]
    assert sorted(PROJECT["license-files"]) == sorted({work.text for work in licences.SHIPPED})
    assert {work.licence for work in licences.SHIPPED} == {PROJECT["license"]}
    assert all((ROOT / work.text).is_file() for work in licences.SHIPPED)


def test_nothing_shipped_is_of_others_but_what_is_listed() -> None:
    """A notice of somebody else's right stands only in the files of the works that are listed."""
    notice = re.compile(rb"\(c\)\s+\d{4}|copyright\s+(?:\(c\)\s+)?\d{4}|SPDX-License|@license", re.IGNORECASE)
    shipped = [name for folder in INTO_WHEEL for name in sources(folder)]
    noticed = [name for name in shipped if notice.search((ROOT / name).read_bytes())]
    listed = {work.text for work in licences.SHIPPED}
    works = {licences.work_of(name) for name in shipped} - {licences.SHIPPED[0]}
    assert [name for name in noticed if licences.work_of(name) not in works and name not in listed] == []


def test_every_dependency_states_a_licence() -> None:
    """And what is needed by all users lets a user of any kind install it."""
    stated = {name: licences.licence_of(name) for name in licences.below(licences.requirements()["stabtree"])}
    assert {"numpy", "pandas", "typer"} <= stated.keys()
    assert not [name for name, said in stated.items() if re.search(r"not stated|\bA?GPL|Commercial|Proprietary", said)]


# ------------------------------------------------------------------ changelog
BEFORE = "# Changelog\n\n## Unreleased\n\n### Added\n- More.\n\n## 0.1.0 - 2026-01-02\n\n### Added\n- All.\n"


def test_a_release_dates_what_was_unreleased() -> None:
    """It stands under the version, with the verdicts that changed; Unreleased is empty, older releases stay."""
    text = released(BEFORE, "0.2.0", "2026-03-04", "None.\n")
    assert section(text, "0.2.0") == f"### Added\n- More.\n\n{VERDICTS}\n\nNone."
    assert section(text, "Unreleased") == ""
    assert section(text, "0.1.0") == "### Added\n- All."
    assert text.index("## Unreleased") < text.index("## 0.2.0 - 2026-03-04") < text.index("## 0.1.0")
    assert text.endswith("- All.\n")


def test_a_release_takes_in_what_its_candidates_brought() -> None:
    """Heading by heading, without the verdicts that each changed."""
    text = BEFORE.replace("- More.\n", "- More.\n\n### Fixed\n- It.\n")
    text = released(text, "0.2.0rc1", "2026-03-01", "One.")
    text = text.replace("## Unreleased\n", "## Unreleased\n\n### Fixed\n- That.\n")
    text = released(text, "0.2.0rc2", "2026-03-02", "Two.")
    assert section(text, "0.2.0rc2").startswith("### Fixed\n- That.\n\n### Verdicts")
    done = released(text, "0.2.0", "2026-03-04", "Three.")
    assert section(done, "0.2.0") == f"### Fixed\n- That.\n- It.\n\n### Added\n- More.\n\n{VERDICTS}\n\nThree."
    assert re.findall("^## (.*)$", done, re.MULTILINE) == ["Unreleased", "0.2.0 - 2026-03-04", "0.1.0 - 2026-01-02"]


def test_nothing_is_released_twice_or_empty() -> None:
    """A version that the changelog has, and a release that brings nothing, are mistakes."""
    with pytest.raises(ChangelogError, match=r"0\.1\.0 already"):
        released(BEFORE, "0.1.0", "2026-03-04", "")
    with pytest.raises(ChangelogError, match="nothing stands under Unreleased"):
        released(BEFORE.replace("### Added\n- More.\n\n", ""), "0.2.0", "2026-03-04", "")
    with pytest.raises(ChangelogError, match=r"no section 0\.3"):
        section(BEFORE, "0.3")
