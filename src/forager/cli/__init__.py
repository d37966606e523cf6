"""The command line: parse, call one service, shape the answer."""
