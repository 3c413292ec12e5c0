"""The connection of a link: kept alive, called again, watched."""
