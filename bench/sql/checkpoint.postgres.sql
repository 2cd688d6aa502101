-- Writes out what earlier measurements have left, so that none pays for another.
CHECKPOINT;
