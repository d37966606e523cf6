"""The HTTP API: parse the request, call one service, shape the answer."""
