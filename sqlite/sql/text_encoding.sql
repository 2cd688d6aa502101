-- Returns the file's text encoding, which is fixed when the file is created.
PRAGMA encoding;
