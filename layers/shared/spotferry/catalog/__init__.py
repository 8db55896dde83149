"""Offers: the catalogue's file, where it is kept, and how price lists get into it."""
