-- The file's text encoding, fixed when it was created.
PRAGMA encoding;
