"""The callbacks without their frameworks: importing them costs nothing, and what is missing is said."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stabtree import integrations
from stabtree.common.errors import StabtreeError

HEAVY = ("torch", "lightning", "pytorch_lightning", "keras", "transformers", "accelerate", "numpy", "pandas")
HIDDEN = (
    "lightning", "lightning.pytorch", "lightning.pytorch.callbacks", "pytorch_lightning", "keras",
    "transformers.trainer_callback",
)  # fmt: skip


def test_importing_the_integrations_imports_no_framework() -> None:
    """Nor numpy: a training script pays for the callback that it asks for."""
    code = f"import sys, stabtree.integrations; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"
    # As of any module.
    assert "LightningCallback" in dir(integrations)
    with pytest.raises(AttributeError, match="NoCallback"):
        _ = integrations.NoCallback


@pytest.mark.parametrize(("name", "module", "package"), [
    ("LightningCallback", "lightning", "lightning"),
    ("KerasCallback", "keras", "keras"),
    ("HuggingFaceCallback", "huggingface", "transformers"),
])  # fmt: skip
def test_a_framework_that_is_missing_is_named(
    name: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to install, and what works without it."""
    for hidden in HIDDEN:
        monkeypatch.setitem(sys.modules, hidden, None)
    monkeypatch.delitem(sys.modules, f"stabtree.tools.live.callbacks.{module}", raising=False)
    with pytest.raises(StabtreeError, match="not installed") as raised:
        getattr(integrations, name)
    assert raised.value.hint.startswith(f"pip install {package},")
    assert "stabtree.Recorder" in raised.value.hint
