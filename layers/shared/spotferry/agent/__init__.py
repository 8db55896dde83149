"""What runs on a machine: standard library only, Python 3.9 or newer, shipped as one zip application."""

VERSION = "0.1.0"
"""Sent at hello."""

PROTOCOL = 1
"""The version of `docs/agent-protocol.md` that this agent speaks."""
