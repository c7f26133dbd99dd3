-- Reads a record.
--
-- KEYS  the record
-- Reply the record, empty for none
return redis.call('GET', KEYS[1]) or ''
