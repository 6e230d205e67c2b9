"""The metrics of torchtitan.

```python
from stabtree.integrations import TorchtitanMetrics

Trainer.Config(..., metrics=TorchtitanMetrics.Config(log_freq=1))
```
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stabtree.tools.live.callbacks.attached import missing
from stabtree.tools.live.doors.loggers import Logger

try:
    import torch
    from torchtitan.components.metrics import MetricsProcessor, _get_metrics_rank
except ImportError as error:
    raise missing("torchtitan", "torchtitan") from error


class TorchtitanMetrics(MetricsProcessor):  # type: ignore[misc,unused-ignore]  # torchtitan may be missing
    """Writes what torchtitan logs, beside TensorBoard and W&B, on the rank that holds the loss."""

    @dataclass(kw_only=True, slots=True)
    class Config(MetricsProcessor.Config):  # type: ignore[misc,unused-ignore]
        """The settings of torchtitan's own metrics, and two of ours."""

        stabtree_log: str = "stabtree.jsonl"
        """The log, in the run's `dump_folder`"""

        on_finding: str = "warn"
        """`raise` ends the run at a critical finding"""

    def _build_metric_logger(self, **given: Any) -> Any:
        """Return torchtitan's own logger, with ours before it."""
        built = super()._build_metric_logger(**given)
        holds_loss = _get_metrics_rank(parallel_dims=given["parallel_dims"], pp_schedule=given["pp_schedule"])
        if torch.distributed.is_initialized() and torch.distributed.get_rank() != holds_loss:
            return built
        config = given["config"]
        path = Path(given["dump_folder"]) / config.stabtree_log
        logger = Logger(path, beside=built, rank=0, on_finding=config.on_finding)
        logger.log_config({"framework": "torchtitan", **(given.get("config_dict") or {})})
        return logger
