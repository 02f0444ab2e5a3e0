"""What it costs to look at a run: a long journal that is opened, and many who watch while the control loop works."""
