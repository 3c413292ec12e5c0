"""SSH: the only room that knows paramiko and sshtunnel."""
