"""The `spotferry` command."""
