-- Records, as check.lua reads and writes them.
--
-- A record is one string: the tag of the figures it was written under, then doubles: last, and each limit's fields (a
-- bucket: whole tokens and the fraction in 1/P; a fixed window: its count; a counter: both counts; a log: its running
-- total, then the head, the length and the slots of its ring); then the ring of each log, a slot of 16 bytes for each
-- entry: its stamp, and the running total before it.
--
-- A small record is read and written as a whole. Of a larger one only what is asked for is read, and what changes is
-- written in place, so that a check takes as long whatever a log holds.
--
-- Nothing is written before all is decided: a script that ends early has charged nobody.
local unpack_, pack, call = struct.unpack, struct.pack, redis.call
local floor, sub, byte = math.floor, string.sub, string.byte
local EXACT, FOR_EVER = 9007199254740992, 1e15
-- Running totals beyond this are written anew, counted from what is left, by whoever is told that they are foreign.
local MOST_TOTAL = EXACT / 2
local AT_ONCE = 1024

-- Records as they were read, and as they are by now.
local records = {}

local function read(name)
  local bytes = call('GETRANGE', name, 0, AT_ONCE - 1)
  local size = #bytes
  if size == AT_ONCE then size = call('STRLEN', name) end
  local record = {name = name, bytes = bytes, size = size, kept = size > 0 and bytes}
  records[name] = record
  return record
end

-- So many bytes of a record as it was read, from that offset on.
local function bytes_of(record, offset, length)
  if offset + length <= #record.bytes then return sub(record.bytes, offset + 1, offset + length) end
  return call('GETRANGE', record.name, offset, offset + length - 1)
end

-- Whether it is a number that a script of ours may have written.
local function is_whole(number)
  return number % 1 == 0 and number >= 0 and number <= EXACT
end

-- The slot of the entry at `index`, counted from the oldest.
local function slot_of(log, index)
  local slot = log.head + index
  return slot < log.slots and slot or slot - log.slots
end

-- An entry's stamp, and the running total before it.
local function entry(log, index)
  local added = log.added
  if added and index == log.length - 1 then return added[1], added[2] end
  local stamp, before = unpack_('>dd', bytes_of(log.record, log.start + 16 * slot_of(log, index), 16))
  if is_whole(stamp) and is_whole(before) then return stamp, before end
  log.record.broken = true
  return 0, 0
end

-- All entries from the one at `index` on, one after the other.
local function entries(log, index)
  local left = log.length - index
  if log.added then left = left - 1 end
  local parts = {}
  if left > 0 then
    local slot = slot_of(log, index)
    local unbroken = math.min(left, log.slots - slot)
    parts[1] = bytes_of(log.record, log.start + 16 * slot, 16 * unbroken)
    if left > unbroken then parts[2] = bytes_of(log.record, log.start, 16 * (left - unbroken)) end
  end
  if log.added then parts[#parts + 1] = pack('>dd', log.added[1], log.added[2]) end
  return table.concat(parts)
end

-- The first place from `low` on whose entry is `past`; the log's length if none is.
local function first(log, low, past)
  local high = log.length
  for _ = 1, 53 do
    if low >= high then break end
    local middle = floor((low + high) / 2)
    if past(entry(log, middle)) then high = middle else low = middle + 1 end
  end
  return low
end

-- Whether a log's figures are of a ring.
local function is_ring(log)
  local length, slots = log.length, log.slots
  if log.added then length = length - 1 end
  return is_whole(log.total) and log.total <= MOST_TOTAL and is_whole(slots) and is_whole(length) and length <= slots
    and is_whole(log.head) and (log.head < slots or log.head == 0)
end

-- Finds what is left of a log at t: the entries from `live` on, before which the running total was `base`.
local function bring_up(log, t)
  local length, out = log.length, t - log.window
  log.live, log.base = length, log.total
  if length > 0 then
    local oldest, before = entry(log, 0)
    if oldest > out then
      log.live, log.base = 0, before
    else
      log.live = first(log, 1, function(stamp) return stamp > out end)
      if log.live < length then
        local _
        _, log.base = entry(log, log.live)
      end
    end
    log.newest = entry(log, length - 1)
    if log.base > log.total then log.record.broken = true end
  end
  -- Nothing is left of what was counted: count from 0 again, so that totals stay small.
  if log.live == length then log.base, log.total = 0, 0 end
end

-- Lets go what a log no longer counts, and adds a cost at t.
local function add(log, t, cost)
  if log.live > 0 then
    log.length = log.length - log.live
    log.head = log.length > 0 and slot_of(log, log.live) or 0
    log.live = 0
  end
  if log.length == 0 or log.newest ~= t then
    log.added, log.newest = {t, log.total}, t
    log.length = log.length + 1
  end
  log.total = log.total + cost
end

-- The record without its rings.
local function header(record)
  local fields = record.fields
  for _, log in ipairs(record.logs) do
    local field = log.field
    fields[field], fields[field + 1], fields[field + 2], fields[field + 3] = log.total, log.head, log.length, log.slots
  end
  return record.tag .. pack('>' .. string.rep('d', #fields + 1), record.last, unpack(fields))
end

-- Writes what was added where it belongs, which has to have room.
local function write_in_place(record)
  for _, log in ipairs(record.logs) do
    if log.added then
      local offset = log.start + 16 * slot_of(log, log.length - 1)
      call('SETRANGE', record.name, offset, pack('>dd', log.added[1], log.added[2]))
    end
  end
  call('SETRANGE', record.name, 0, header(record))
  if record.life > 0 then call('PEXPIRE', record.name, record.life) else call('PERSIST', record.name) end
end

-- Writes the record as a whole: a small one in as few bytes as it takes, the rings of a larger one with room to grow.
local function write_anew(record, is_small)
  local parts = {''}
  for _, log in ipairs(record.logs) do
    local slots, length = log.slots, log.length
    parts[#parts + 1] = entries(log, 0)
    if is_small then slots = length elseif length > slots or 4 * length < slots then slots = floor(1.5 * length) end
    if slots > length then parts[#parts + 1] = string.rep('\0', 16 * (slots - length)) end
    log.new_slots = slots
  end
  for _, log in ipairs(record.logs) do log.head, log.slots = 0, log.new_slots end
  parts[1] = header(record)
  local value = table.concat(parts)
  if record.life > 0 then
    call('SET', record.name, value, 'PX', record.life)
  else
    call('SET', record.name, value)
  end
end

local function write(record)
  local least, has_room = #record.kept, record.size > 0
  for _, log in ipairs(record.logs) do
    least = least + 16 * log.length
    has_room = has_room and log.length <= log.slots
  end
  if has_room and least > AT_ONCE and record.size <= 4 * least then
    write_in_place(record)
  else
    write_anew(record, least <= AT_ONCE)
  end
end
