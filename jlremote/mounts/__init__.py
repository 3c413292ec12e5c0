"""Remote folders on the laptop: sshfs, whose bytes travel over the link's own connection."""
