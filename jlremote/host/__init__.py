"""The remote host as jlr sees it: a shell that runs scripts."""
