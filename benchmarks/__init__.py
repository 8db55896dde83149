"""What `make bench` measures: one module a subject, one table at the end."""
