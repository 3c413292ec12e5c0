"""Who we are: keys, agents, passwords, second factors."""
