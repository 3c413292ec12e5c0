"""The face: the only room that prints or asks, and the only one that knows click and rich."""
