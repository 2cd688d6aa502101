-- Writes the data of earlier measurements to disk, so that it does not slow down the next
-- measurement.
CHECKPOINT;
