-- Returns how the file is journalled, and how many of its pages are free.
SELECT (SELECT journal_mode FROM pragma_journal_mode), (SELECT freelist_count FROM pragma_freelist_count), (SELECT page_count FROM pragma_page_count);
