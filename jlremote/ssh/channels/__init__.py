"""paramiko's channels without their threads and waits."""
