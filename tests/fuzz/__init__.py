"""What must hold for any bytes at all: one check per kind of input, for fuzzers and for tests."""
