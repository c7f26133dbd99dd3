-- Decides checks, and charges those that are admitted.
--
-- KEYS  for each check its record, then a list for each of its sliding logs
-- ARGV  1: now, spare milliseconds, milliseconds a record lives that never becomes as new (0: for ever), mode, number of
--       plans
--       then for each plan its tag and its figures
--       then for each check: plan, cost, whether it takes up to the cost, whether it wants whole logs
-- Reply for each check: a verdict (0 refused, 1 admitted, 2 the record stands under other figures or is not ours),
--       the record as it was, and what the answer needs of each log
--
-- A record is the tag of the figures it was written under, then doubles: last, and each limit's fields (a bucket:
-- whole tokens and the fraction in 1/P; a fixed window: its count; a counter: both counts; a log: its running
-- total). A log's entries are (stamp, running total before it) in a list of its own.
--
-- Pure: no clock is read, so the same arguments on the same state decide the same anywhere. All numbers are
-- integers below 2^53, which doubles hold exactly; a product that may pass 2^53 is divided digit by digit.
local unpack_, pack, call = struct.unpack, struct.pack, redis.call
local floor, sub, byte = math.floor, string.sub, string.byte
local EXACT, FOR_EVER = 9007199254740992, 1e15
local now, spare, unending, mode, plans = unpack_('>ddddd', ARGV[1])
local EACH, ALL = 0, 1

-- floor(a * b / m) and the rest, for b < m < 2^45 and a up to 2^53: Horner's rule over a's digits.
local function muldiv(a, b, m)
  local product = a * b
  if product < EXACT then
    local rest = product % m
    return (product - rest) / m, rest
  end
  local digits, n = {}, 0
  for _ = 1, 8 do
    if a == 0 then break end
    local digit = a % 128
    n = n + 1
    digits[n] = digit
    a = (a - digit) / 128
  end
  local quotient, rest = 0, 0
  for i = n, 1, -1 do
    local x = rest * 128 + b * digits[i]
    rest = x % m
    quotient = quotient * 128 + (x - rest) / m
  end
  return quotient, rest
end

-- Records as they are by now, and how many milliseconds those live that are to be written.
local seen, lives = {}, {}

local function entry(key, index)
  return unpack_('>dd', call('LINDEX', key, index))
end

-- The first place from `low` on whose entry is `past`; `length` if none is.
local function first(key, low, length, past)
  local high = length
  for _ = 1, 53 do
    if low >= high then break end
    local middle = floor((low + high) / 2)
    if past(entry(key, middle)) then high = middle else low = middle + 1 end
  end
  return low
end

-- What a log holds at t, its running total being `total`.
local function look_into(key, kept, total, window, t)
  local length = kept and call('LLEN', key) or 0
  local log = {key = key, length = length, live = length, base = total, total = total, window = window}
  if length > 0 then
    local oldest, before = entry(key, 0)
    if oldest > t - window then
      log.live, log.base = 0, before
    else
      log.live = first(key, 1, length, function(stamp) return stamp > t - window end)
      if log.live < length then
        local _
        _, log.base = entry(key, log.live)
      end
    end
    log.newest = entry(key, -1)
  end
  -- Nothing is left of what was counted: count from 0 again, so that totals stay small.
  if log.live == length then log.base, log.total = 0, 0 end
  return log
end

-- What a record holds at the instant it is decided at: h its fields by then, room what every limit would admit.
local function look(name, tag, figures, lists)
  local kept = seen[name]
  if kept == nil then
    kept = call('GET', name)
    seen[name] = kept
  end
  local expected, p = unpack_('>d', figures)
  if kept and (#kept ~= #tag + expected or sub(kept, 1, #tag) ~= tag) then
    return {kept = kept, foreign = true}
  end
  local last, at = 0, 0
  if kept then last, at = unpack_('>d', kept, #tag + 1) end
  local t = now
  if last > now then t = last end
  local h, n, room, ends = {}, 0, EXACT, 0
  local s = {kept = kept, name = name, tag = tag, t = t, h = h, less = {}, more = {}, buckets = {}, logs = {}}
  local size = #figures - 8 -- the number of logs comes last
  for _ = 1, 8 do
    if p > size then break end
    local kind = byte(figures, p)
    local here
    if kind == 98 then -- b, a bucket: capacity, then amount per period
      local C, amount, P
      C, amount, P, p = unpack_('>ddd', figures, p + 1)
      local q, f = C, 0
      if kept then
        q, f, at = unpack_('>dd', kept, at)
        local elapsed = t - last
        if elapsed > 0 and amount > 0 and q < C then
          local part = amount % P
          local earned = elapsed * ((amount - part) / P)
          if earned >= C - q then
            q, f = C, 0
          else
            q = q + earned
            if part > 0 then
              local rest
              earned, rest = muldiv(elapsed, part, P)
              f = f + rest
              if f >= P then f, earned = f - P, earned + 1 end
              q = q + earned
              if q >= C then q, f = C, 0 end
            end
          end
        end
      end
      h[n + 1], h[n + 2] = q, f
      s.less[#s.less + 1] = n + 1
      s.buckets[#s.buckets + 1] = {n + 1, C, P / amount}
      n = n + 2
      here = q
    else
      local limit, W
      limit, W, p = unpack_('>dd', figures, p + 1)
      if kind == 102 then -- f, a fixed window
        local count, elapsed = 0, t % W
        if kept then
          count, at = unpack_('>d', kept, at)
          if last < t - elapsed then count = 0 end
        end
        n = n + 1
        h[n] = count
        here = limit - count
        if W - elapsed > ends then ends = W - elapsed end
      elseif kind == 99 then -- c, a counter: then the most that a count weighs
        local most
        most, p = unpack_('>d', figures, p)
        local previous, count, elapsed = 0, 0, t % W
        if kept then
          previous, count, at = unpack_('>dd', kept, at)
          if last < t - elapsed then
            if last >= t - elapsed - W then previous, count = count, 0 else previous, count = 0, 0 end
          end
        end
        h[n + 1], h[n + 2] = previous, count
        n = n + 2
        if previous > most then previous = most end
        if count > most then count = most end
        if elapsed > 0 and previous > 0 then
          local rest
          previous, rest = muldiv(previous, W - elapsed, W)
          if rest > 0 then previous = previous + 1 end
        end
        here = limit - count - previous
        if W + W - elapsed > ends then ends = W + W - elapsed end
      else -- l, a log
        local total = 0
        if kept then total, at = unpack_('>d', kept, at) end
        local log = look_into(KEYS[lists + #s.logs], kept, total, W, t)
        log.limit = limit
        n = n + 1
        h[n] = log.total
        s.logs[#s.logs + 1] = log
        here = limit - (log.total - log.base)
        if W > ends then ends = W end
      end
      s.more[#s.more + 1] = n
    end
    -- Written so that what is not a number refuses.
    if not (here >= room) then room = here end
  end
  -- What no script of ours has written is not to be charged.
  for i = 1, n do
    if h[i] % 1 ~= 0 then return {kept = kept, foreign = true} end
  end
  if not (last >= 0 and last % 1 == 0) then return {kept = kept, foreign = true} end
  s.room, s.ends, s.fields = room, ends, n
  return s
end

local function charge(s, cost)
  local h, ends, never = s.h, s.ends, false
  for _, log in ipairs(s.logs) do
    local key = log.key
    if not s.kept then call('DEL', key) end
    if log.live > 0 then call('LTRIM', key, log.live, -1) end
    if log.live == log.length or log.newest ~= s.t then call('RPUSH', key, pack('>dd', s.t, log.total)) end
    local life = math.ceil((s.t - now + log.window) / 1000) + spare + 1
    call('PEXPIRE', key, string.format('%.0f', life))
  end
  for _, i in ipairs(s.less) do h[i] = h[i] - cost end
  for _, i in ipairs(s.more) do h[i] = h[i] + cost end
  for _, bucket in ipairs(s.buckets) do
    local missing = bucket[2] - h[bucket[1]]
    if missing > 0 then
      local full = missing * bucket[3]
      if full > ends then ends = full end
    end
  end
  local life = math.ceil((s.t - now + ends) / 1000) + spare + 1
  seen[s.name] = s.tag .. pack('>' .. string.rep('d', s.fields + 1), s.t, unpack(h))
  lives[s.name] = life < FOR_EVER and life or unending
end

-- What the answer needs of a log.
local function tell(log, cost, short, whole)
  if whole then
    local entries = log.length > 0 and call('LRANGE', log.key, log.live, -1) or {}
    return pack('>dd', log.total, #entries) .. table.concat(entries)
  end
  if log.live == log.length then return pack('>d', log.total) end
  local key, length, total = log.key, log.length, log.total
  local function ends_at(index)
    if index + 1 >= length then return total end
    local _, before = entry(key, index + 1)
    return before
  end
  -- The entry with which so little is left that the running total counts from `need` on.
  local function out_at(need)
    return first(key, log.live + 1, length, function(_, before) return before >= need end) - 1
  end
  local places = {log.live, length - 1}
  if short then places[3] = out_at(total + cost - log.limit) end
  -- In debt what is left does not grow with the next entry.
  if total - log.base > log.limit then places[#places + 1] = out_at(total - log.limit + 1) end
  table.sort(places)
  local told = {pack('>d', log.base)}
  for _, place in ipairs(places) do
    local stamp = entry(key, place)
    told[#told + 1] = pack('>dd', stamp, ends_at(place))
  end
  return table.concat(told)
end

local reply, found = {}, {}
local key, arg, all = 1, 2 + 2 * plans, true
for check = 1, #ARGV - arg + 1 do
  local plan, cost, up_to, whole = unpack_('>dddd', ARGV[arg + check - 1])
  local tag, figures = ARGV[2 * plan], ARGV[2 * plan + 1]
  local s = look(KEYS[key], tag, figures, key + 1)
  local logs = unpack_('>d', figures, #figures - 7)
  found[check] = s
  local verdict = 2
  if not s.foreign then
    local room = s.room
    if up_to == 1 then
      local most = cost
      if room < cost then cost = room end
      if cost < 1 and most > 0 then cost = 1 end
      if cost < 0 then cost = 0 end
    end
    s.cost = cost
    verdict = room >= cost and 1 or 0
  end
  all = all and verdict == 1
  reply[#reply + 1] = verdict
  reply[#reply + 1] = s.kept or ''
  for i = 1, logs do
    reply[#reply + 1] = s.foreign and '' or tell(s.logs[i], cost, s.logs[i].limit - (s.logs[i].total - s.logs[i].base) < cost, whole == 1)
  end
  if mode == EACH and verdict == 1 and cost > 0 then charge(s, cost) end
  key = key + 1 + logs
end
if mode == ALL and all then
  for _, s in ipairs(found) do
    if s.cost > 0 then charge(s, s.cost) end
  end
end
for name, life in pairs(lives) do
  if life > 0 then
    call('SET', name, seen[name], 'PX', string.format('%.0f', life))
  else
    call('SET', name, seen[name])
  end
end
return reply
