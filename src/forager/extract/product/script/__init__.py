"""Facts in the scripts of a page: the state that shops pass to their JavaScript."""
