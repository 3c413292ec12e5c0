"""The command line: workflows are faked here; processes, terminals and shells are not."""
