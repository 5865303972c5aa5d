"""What agents leave for each other: entries and messages."""
