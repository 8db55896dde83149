"""Paperspace, now DigitalOcean's: machines on demand, no spot market, and no interface that tells a price."""
