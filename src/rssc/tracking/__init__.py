"""From frames to tracks, and tracks registered again from a solution."""
