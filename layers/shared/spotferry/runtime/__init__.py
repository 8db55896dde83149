"""Lambda glue: settings, wiring, and how errors become answers."""
