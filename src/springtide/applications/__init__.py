"""Applications that come with Springtide."""
