"""What is known by its shape: addresses, ids, keys of services, and what stands under a word such as `password`."""

from __future__ import annotations

import re

UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
IPV4 = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)"
# Written out, or with `::` for zeros; an address of Ethernet looks the same.
_IPV6 = (
    r"(?<![\w:])(?:(?:[0-9a-fA-F]{1,4}:){5,7}[0-9a-fA-F]{1,4}"
    r"|(?=[a-fA-F:]*+\d)(?:[0-9a-fA-F]{1,4}:){1,6}:(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,5})?)(?![\w:])"
)
# Keys that services hand out, by what they begin with.
_SERVICE = (
    r"(?<![^\W_])(?:(?:hf|gh[opsur]|npm|gsk|r8)_[A-Za-z0-9]{16,}|(?:github_pat|wandb_v1)_\w{16,}"
    r"|(?:sk|pk|rk|glpat|nvapi|pypi|xox[a-z])[-_](?=[A-Za-z_-]{0,200}\d)[\w-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{10,}(?:\.[\w-]+){1,2})"
)
# What goes as a whole, whatever its words: a host and a login, a home, an id, an address.
SPECIAL = re.compile(
    rf"(?P<host>(?<=://)[^/\\]++)|(?P<home>(?i:(?<=/home/)|(?<=/users/)|(?<=\\users\\)|(?<=/user/))[^/\\]++)"
    rf"|(?P<ids>{UUID}|{_SERVICE})|(?P<ip>{IPV4})|(?P<named>(?<=ip-)\d{{1,3}}(?:-\d{{1,3}}){{3}})|(?P<ip6>{_IPV6})"
)
# What shows that even the name of a column is none.
TELLS_OF_A_PLACE = re.compile(
    rf"[^\s@]@[^\s@]|://|^[/~\\]|^[A-Za-z]:\\|[/\\](?i:home|users)[/\\]|{UUID}|{_SERVICE}|{IPV4}"
)
ADDRESS = re.compile(IPV4)
_MAIL = re.compile(r"[^\s@]@[^\s@]")

_LOCKED = (
    r"(?:password|passwd|passphrase|secret|api[-_ ]?key|apikey|(?:access|private|secret)[-_ ]?key(?:[-_ ]?id)?"
    r"|(?:auth|access|api|hf|hub|bearer|secret|github|wandb)[-_ ]?token)"
)
# Under a key, or as an option of a command. None and true say that there is one, or none, and stay.
SECRET_VALUE = re.compile(
    rf"(?:{_LOCKED}(?![^\W_])\\{{0,3}}[\"']?\s{{0,9}}[:=]\s{{0,9}}|-{_LOCKED}\s)\\{{0,3}}[\"']?"
    r"(?!(?:none|null|true|false)\b)(?P<value>(?<=[\"'])[^\"'\r\n]{1,500}(?=[\"'])|[^\s\"',;&|(){}\[\]<>]++)",
    re.IGNORECASE,
)
SECRET_KEY = re.compile(rf"(?:.*[^a-z])?{_LOCKED}", re.IGNORECASE)
# What is said under these tells of a person or a machine, be it a common word.
PERSONAL_KEY = re.compile(
    r"(?:.*[_/-])?(?:user|username|user_?name|author|owner|e?mail|host|hostname|host_?name|node_?name|entity|account"
    r"|login)",
    re.IGNORECASE,
)

_DIGIT = re.compile(r"\d")
_GROUPS = re.compile(r"\d+|[^\W\d_]+")
_HASH = re.compile(r"[0-9a-f]{7,}|[0-9A-F]{7,}")
GROUPS = 4  # runs of letters and digits in turn, from which on they are an id, or
GROUPS_OF_A_HASH = 3  # where it is hexadecimal
LONG = 20  # characters from which on letters with a digit are one


def kind_of(chunk: str) -> str:
    """What a stand-in is counted as, by what its word is a part of."""
    if "://" in chunk:
        return "URLs"
    if _MAIL.search(chunk):
        return "e-mail addresses"
    return "paths" if "/" in chunk or "\\" in chunk else "names"


def is_mixed(token: str) -> list[str]:
    """The words of a run of letters and digits that follow each other as in an id; none where they do not."""
    if not _DIGIT.search(token):
        return []
    groups = _GROUPS.findall(token)
    words = [group.lower() for group in groups if group.isalpha()]
    hashed = len(groups) >= GROUPS_OF_A_HASH and _HASH.fullmatch(token) and any(len(word) > 1 for word in words)
    if len(groups) >= GROUPS or hashed:
        return words
    return [word for word in words if len(word) > 1] if len(token) >= LONG else []
