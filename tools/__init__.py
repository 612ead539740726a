"""What keeps the repository's pages up to date; not part of the package."""
