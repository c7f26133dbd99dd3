-- Puts another record in the place of one that is still as it was read.
--
-- KEYS  the record, then the list of each log that is to change
-- ARGV  1: the record as it was read, empty for none
--       2: the record that is to be, empty for none
--       3: milliseconds it lives, 0 for ever
--       then for each list: the stamp up to which entries go, the running total as it was and as it is to be, the
--       stamp of what is added, milliseconds it lives; a total below 0 lets the whole list go
-- Reply 1 if done, 0 if the record is another by now
local call, unpack_, pack = redis.call, struct.unpack, struct.pack
local kept = call('GET', KEYS[1])
if (kept or '') ~= ARGV[1] then return 0 end
for i = 2, #KEYS do
  local key = KEYS[i]
  local old, from, total, now, life = unpack_('>ddddd', ARGV[i + 2])
  if not kept or total < 0 then call('DEL', key) end
  if total >= 0 then
    local length = call('LLEN', key)
    local newest, before
    for _ = 1, length do
      local oldest = unpack_('>dd', call('LINDEX', key, 0))
      if oldest > old then break end
      call('LPOP', key)
    end
    for _ = 1, length do
      local last = call('LINDEX', key, -1)
      if not last then break end
      newest, before = unpack_('>dd', last)
      if before < total then break end
      call('RPOP', key)
      newest = nil
    end
    if total > from and newest ~= now then call('RPUSH', key, pack('>dd', now, from)) end
    call('PEXPIRE', key, string.format('%.0f', life))
  end
end
if ARGV[2] == '' then
  call('DEL', KEYS[1])
elseif ARGV[3] == '0' then
  call('SET', KEYS[1], ARGV[2])
else
  call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
