-- Checks the file, and returns the first fault; "ok" if there is none.
PRAGMA quick_check(1);
