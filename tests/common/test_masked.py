"""Passwords and tokens of addresses: masked in whatever way an address is written, and in every error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stabtree import loaders
from stabtree.common import toml
from stabtree.common.text import masked
from tests.cli.command import run
from tests.loaders.paths import logs

if TYPE_CHECKING:
    from pathlib import Path

ADDRESSES = (
    "s3://K:PW@b",
    "s3://K:PW@b/runs/log.csv",
    "ftp://:PW@h/x",
    "simplecache::http://u:PW@127.0.0.1:1/x.csv",
    "filecache::s3://K:PW@b/x.csv",
    "zip://a.csv::s3://K:PW@b/x.zip",
    "simplecache::gs://b/x?secret=PW",
    "gs://b?access_token=PW",
    "gs://b/x.csv?access_token=PW&a=1",
    "s3://b/x.csv?X-Api-Secret=PW",
    "http://127.0.0.1:1/a?password=PW#tok",
    "http://h:80/x@y?sig=PW",
    "http://h/x?a=1&X-Amz-Signature=PW&b=2",
    "http://h/x?API_KEY=PW",
)
COMMANDS = (
    "scan",
    "diagnose",
    "diagnose --json",
    "inspect",
    "watch",
    "check",
    "check --json",
    "anonymize",
    "compare",
    "tree show",
    "scan --output jsonl",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_secret_of_an_address_is_left(address: str) -> None:
    """Nor where a path of the system made one slash of two."""
    for text in (address, address.replace("://", ":/"), f"can't open '{address}': no"):
        assert "PW" not in masked(text)
        assert "***" in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a@b",
        "http://host:8080/x?page=2&step=3",
        "C:/Users/me@work/run.csv",
        "gs://bucket/runs?generation=1",
        "at 12:/a and b@c",
        "https://arxiv.org/abs/2309.14322",
    ],
)
def test_an_address_without_a_secret_is_shown(text: str) -> None:
    """As it was typed."""
    assert masked(text) == text


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_a_secret(command: str) -> None:
    """On neither stream, whatever it says of the address."""
    for address in ADDRESSES:
        done = run(*command.split(), address)
        assert done.returncode == 2
        assert "PW" not in done.stdout + done.stderr


def test_a_typed_secret_is_hidden_in_whatever_goes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a traceback, in a file, however it is spelled; of the settings and the environment, too."""
    folder = tmp_path / "s3:" / "KEY:SECRET/1@b"
    logs.csv(folder / "run.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:SECRET2@h:1")
    (tmp_path / "stabtree.toml").write_text('tree = "https://h/x?token=SECRET3"', encoding="utf-8")
    run("diagnose", "s3:/KEY:SECRET/1@b/run.csv", "--output", "json=a.json", "--tree", "phase19")
    assert "***" in (tmp_path / "a.json").read_text(encoding="utf-8")
    assert "SECRET" not in (tmp_path / "a.json").read_text(encoding="utf-8")

    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("KEY%3ASECRET%2F1 key:secret/1 SECRET2 SECRET3")

    monkeypatch.setattr(loaders, "find_runs", fails)
    done = run("s3:/KEY:SECRET/1@b/run.csv", "--debug")
    assert done.returncode == 4
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError: *** *** *** ***" in done.stderr


def test_a_dotted_key_of_usual_depth_is_read() -> None:
    """Some parts, in text, in comments and in values as many as they like."""
    text = "[a.b]\nc.d.'e.f' = \"1.2.3\" # " + "...\n" + "v = '" + "../" * 100 + "x'\n"
    assert toml.parse(text)["a"]["b"]["c"]["d"]["e.f"] == "1.2.3"


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a." * 31 + " x\n" * 20_000, '"' * 200_000, "a " * 100_000, "'a'\t" * 50_000]
)
def test_the_depth_is_found_in_linear_time(text: str) -> None:
    """Whatever the text is made of; what is no TOML is an error."""
    with pytest.raises(ValueError, match=r"."):
        toml.parse(text)
