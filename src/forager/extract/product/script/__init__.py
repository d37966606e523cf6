"""What a page's scripts know: the state that shops hand to their own JavaScript."""
