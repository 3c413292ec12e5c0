"""One verb a module: the story of each command in domain words, without printing or asking."""
