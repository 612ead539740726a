"""What a user gets: files and tables."""
