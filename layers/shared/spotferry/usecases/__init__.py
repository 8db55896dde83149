"""One callable class a verb: load, decide, save, then perform the effects."""
