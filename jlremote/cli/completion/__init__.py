"""Shell completion: the scripts, and the words to complete."""
