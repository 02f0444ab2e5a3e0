"""Who goes where: loads as units and bins, first-fit-decreasing packing, subset sum, shard balancing and regrouping."""
