"""The forwards of a link: each proves its far end before it sends a byte."""
