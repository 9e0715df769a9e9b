"""Bills and cost sheets."""
