"""Pictures of released functions; everything drawn is public."""
