"""Logs, counts and traces of all functions, under one set of names."""

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider


class _QuietWhenEmpty(AmazonCloudWatchEMFProvider):
    """Publishes nothing for a call that counted nothing; the library's own writes a warning into each one's log."""

    def flush_metrics(self, raise_on_empty_metrics: bool = False) -> None:  # noqa: FBT001, FBT002 (the library's)
        """Publish what was counted."""
        if self.metric_set or raise_on_empty_metrics:
            super().flush_metrics(raise_on_empty_metrics)


logger = Logger()
"""JSON lines; the service's name comes from the environment."""

metrics = Metrics(provider=_QuietWhenEmpty())
"""Counts; the namespace comes from the environment."""


def count(name: str, value: float = 1) -> None:
    """Add to one of the deployment's counts."""
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
