"""What comes in: videos, image folders, frame times, choice of stretches."""
