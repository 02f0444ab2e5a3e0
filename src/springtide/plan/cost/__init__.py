"""What running so many instances costs, and changing their number (BGElasor's cost model); and timetables that cost little."""
