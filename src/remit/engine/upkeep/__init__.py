"""What an owner does to a workspace."""
