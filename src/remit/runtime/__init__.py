"""Where engine and stores meet: the team, and the owner's view of a workspace."""
