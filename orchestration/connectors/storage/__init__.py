"""Who stores how much where."""
