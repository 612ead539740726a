"""From footage to tracks and a first reconstruction."""
