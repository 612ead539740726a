"""What comes in: videos, image folders, frame times, metadata, choice of stretches."""
