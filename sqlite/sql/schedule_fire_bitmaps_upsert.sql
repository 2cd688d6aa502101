-- Writes the bitmaps of past fires of an hour.
INSERT INTO durable_fired (schedule, hour, bits)
VALUES (?, -- schedule
        ?, -- hour
        ?) -- bits
ON CONFLICT (schedule, hour) DO UPDATE
SET bits = excluded.bits;
