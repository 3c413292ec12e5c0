"""The heading `This machine`: config, demo and completion."""
