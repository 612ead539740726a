"""The way of a known camera through a whole clip: placed, adjusted in sections, joined, closed where it comes back."""
