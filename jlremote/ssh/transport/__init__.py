"""paramiko's transport, made fast and safe."""
