-- Puts another record in the place of one that is still as it was read.
--
-- KEYS  the record
-- ARGV  1: the record as it was read, empty for none
--       2: the record that is to be, empty for none
--       3: milliseconds it lives, 0 for ever
-- Reply 1 if done, 0 if the record is another by now
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
elseif ARGV[3] == '0' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
