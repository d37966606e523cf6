"""What the tests share: databases, waiting, the command line, processes."""
