"""Names that are recognised by their shape: addresses, ids, keys of services, and values of keys like `password`."""

from __future__ import annotations

import re

UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
IPV4 = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)"
# Written out, or with `::` for zeros; a MAC address looks the same.
_IPV6 = (
    r"(?<![\w:])(?:(?:[0-9a-fA-F]{1,4}:){5,7}[0-9a-fA-F]{1,4}"
    r"|(?=[a-fA-F:]*+\d)(?:[0-9a-fA-F]{1,4}:){1,6}:(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,5})?)(?![\w:])"
)
# Keys that services issue, by their prefixes.
_SERVICE = (
    r"(?<![^\W_])(?:(?:hf|gh[opsur]|npm|gsk|r8)_[A-Za-z0-9]{16,}|(?:github_pat|wandb_v1)_\w{16,}"
    r"|(?:sk|pk|rk|glpat|nvapi|pypi|xox[a-z])[-_](?=[A-Za-z_-]{0,200}\d)[\w-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{10,}(?:\.[\w-]+){1,2})"
)
# Replaced as a whole, whatever the words: a host and a login, a home, an id, an address.
SPECIAL = re.compile(
    rf"(?P<host>(?<=://)[^/\\]++)|(?P<home>(?i:(?<=/home/)|(?<=/users/)|(?<=\\users\\)|(?<=/user/))[^/\\]++)"
    rf"|(?P<ids>{UUID}|{_SERVICE})|(?P<ip>{IPV4})|(?P<named>(?<=ip-)\d{{1,3}}(?:-\d{{1,3}}){{3}})|(?P<ip6>{_IPV6})"
)
# A part of a column's name that is a path, an address or an id after all.
NOT_A_NAME = re.compile(rf"[^\s@]@[^\s@]|://|^[/~\\]|^[A-Za-z]:\\|[/\\](?i:home|users)[/\\]|{UUID}|{_SERVICE}|{IPV4}")
ADDRESS = re.compile(IPV4)
_MAIL = re.compile(r"[^\s@]@[^\s@]")

_LOCKED = (
    r"(?:password|passwd|passphrase|secret|api[-_ ]?key|apikey|(?:access|private|secret)[-_ ]?key(?:[-_ ]?id)?"
    r"|(?:auth|access|api|hf|hub|bearer|secret|github|wandb)[-_ ]?token)"
)
# The value of a key, or of an option of a command. None and true only say whether there is one, and stay.
SECRET_VALUE = re.compile(
    rf"(?:{_LOCKED}(?![^\W_])\\{{0,3}}[\"']?\s{{0,9}}[:=]\s{{0,9}}|-{_LOCKED}\s)\\{{0,3}}[\"']?"
    r"(?!(?:none|null|true|false)\b)(?P<value>(?<=[\"'])[^\"'\r\n]{1,500}(?=[\"'])|[^\s\"',;&|(){}\[\]<>]++)",
    re.IGNORECASE,
)
SECRET_KEY = re.compile(rf"(?:.*[^a-z])?{_LOCKED}", re.IGNORECASE)
# Values of these keys identify a person or a machine, even if they are common words.
PERSONAL_KEY = re.compile(
    r"(?:.*[_/-])?(?:user|username|user_?name|author|owner|e?mail|host|hostname|host_?name|node_?name|entity|account"
    r"|login)",
    re.IGNORECASE,
)

_DIGIT = re.compile(r"\d")
_GROUPS = re.compile(r"\d+|[^\W\d_]+")
_HASH = re.compile(r"[0-9a-f]{7,}|[0-9A-F]{7,}")
MIN_GROUPS = 4  # alternating runs of letters and digits in an id
MIN_HASH_GROUPS = 3  # the same, in hexadecimal
MIN_ID = 20  # characters of letters with a digit that are an id anyway


def kind_of(chunk: str) -> str:
    """Return what a stand-in is counted as, by the text that its word is a part of."""
    if "://" in chunk:
        return "URLs"
    if _MAIL.search(chunk):
        return "e-mail addresses"
    if "/" in chunk or "\\" in chunk:
        return "paths"
    return "names"


def is_mixed(token: str) -> list[str]:
    """Return the words among letters and digits that look like an id; none if they do not."""
    if not _DIGIT.search(token):
        return []
    groups = _GROUPS.findall(token)
    words = [group.lower() for group in groups if group.isalpha()]
    hashed = len(groups) >= MIN_HASH_GROUPS and _HASH.fullmatch(token) and any(len(word) > 1 for word in words)
    if len(groups) >= MIN_GROUPS or hashed:
        return words
    if len(token) >= MIN_ID:
        return [word for word in words if len(word) > 1]
    return []
