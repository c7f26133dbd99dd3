-- Reads a record and whole logs.
--
-- KEYS  the record, then the list of each log
-- Reply the record or nothing, then for each log its entries, one after the other
local kept = redis.call('GET', KEYS[1])
local reply = {kept or ''}
for i = 2, #KEYS do
  reply[i] = kept and table.concat(redis.call('LRANGE', KEYS[i], 0, -1)) or ''
end
return reply
