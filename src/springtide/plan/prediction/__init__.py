"""What the sources will offer in the next intervals: a forecast where there is one, else what their recent rates say."""
