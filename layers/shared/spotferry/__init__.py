"""Spotferry: a serverless broker for spot machines."""

__version__ = "0.1.0"
