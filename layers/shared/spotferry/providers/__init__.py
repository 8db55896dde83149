"""The clouds: one folder each; `registry` finds them and imports none."""
