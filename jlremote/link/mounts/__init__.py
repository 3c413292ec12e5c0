"""The mounts of a link: sshfs's sockets, and the SFTP servers behind them."""
