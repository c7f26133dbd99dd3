-- Decides checks, and charges those that are admitted.
--
-- KEYS  for each check its record
-- ARGV  1: spare milliseconds, milliseconds a record lives that never becomes as new (0: for ever), mode, number of plans
--       then for each plan its tag and its figures
--       then for each check: plan, its instant, cost, whether it takes up to the cost, whether it wants whole logs
-- Reply for each check: a verdict (0 refused, 1 admitted, 2 the record stands under other figures or is not ours),
--       the record as it was, and what the answer needs of each log
--
-- Pure: no clock is read, so the same arguments on the same state decide the same anywhere. All numbers are
-- integers below 2^53, which doubles hold exactly; a product that may pass 2^53 is divided digit by digit.
local spare, unending, mode, plans = unpack_('>dddd', ARGV[1])
local now = 0 -- the instant of the check being decided; those of one record have one
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

-- What a record holds at the instant it is decided at: h its fields by then, room what every limit would admit.
local function look(name, tag, figures)
  local record = records[name] or read(name)
  local kept = record.kept
  local header, p = unpack_('>d', figures)
  header = #tag + header
  if kept and (#kept < header or sub(kept, 1, #tag) ~= tag) then return {foreign = true} end
  local last, at = 0, 0
  if kept then last, at = unpack_('>d', kept, #tag + 1) end
  local t = now
  if last > now then t = last end
  local h, n, room, ends, size = {}, 0, EXACT, 0, header
  local s = {record = record, tag = tag, t = t, h = h, less = {}, more = {}, buckets = {}, logs = {}}
  if kept then s.kept = sub(kept, 1, header) end
  local figured = #figures - 8 -- the number of logs comes last
  for _ = 1, 8 do
    if p > figured then break end
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
      local limit, W, most -- the most that a count weighs, whatever was counted under other figures
      limit, W, most, p = unpack_('>ddd', figures, p + 1)
      if kind == 102 then -- f, a fixed window
        local count, elapsed = 0, t % W
        if kept then
          count, at = unpack_('>d', kept, at)
          if last < t - elapsed then count = 0 end
        end
        n = n + 1
        h[n] = count
        s.more[#s.more + 1] = n
        here = limit - (count > most and most or count)
        if W - elapsed > ends then ends = W - elapsed end
      elseif kind == 99 then -- c, a counter
        local previous, count, elapsed = 0, 0, t % W
        if kept then
          previous, count, at = unpack_('>dd', kept, at)
          if last < t - elapsed then
            if last >= t - elapsed - W then previous, count = count, 0 else previous, count = 0, 0 end
          end
        end
        h[n + 1], h[n + 2] = previous, count
        n = n + 2
        s.more[#s.more + 1] = n
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
        local total, head, length, slots = 0, 0, 0, 0
        if kept then total, head, length, slots, at = unpack_('>dddd', kept, at) end
        local log = record.logs and record.logs[#s.logs + 1]
          or {record = record, start = size, total = total, head = head, length = length, slots = slots}
        log.limit, log.window, log.most, log.field = limit, W, most, n + 1
        size = size + 16 * slots
        h[n + 1], h[n + 2], h[n + 3], h[n + 4] = total, head, length, slots
        n = n + 4
        s.logs[#s.logs + 1] = log
        if W > ends then ends = W end
        here = EXACT -- as soon as it is known what its ring may be asked for
      end
    end
    -- Written so that what is not a number refuses.
    if not (here >= room) then room = here end
  end
  -- What no script of ours has written is not to be charged.
  for i = 1, n do
    if h[i] % 1 ~= 0 then return {foreign = true} end
  end
  if not (last >= 0 and last % 1 == 0) then return {foreign = true} end
  if kept and not record.logs and size ~= record.size then return {foreign = true} end
  for _, log in ipairs(s.logs) do
    if not is_ring(log) then return {foreign = true} end
    bring_up(log, t)
    if record.broken then return {foreign = true} end
    local used = log.total - log.base
    local here = log.limit - (used > log.most and log.most or used)
    if here < room then room = here end
  end
  s.room, s.ends = room, ends
  return s
end

local function charge(s, cost)
  local h, ends, record = s.h, s.ends, s.record
  for _, log in ipairs(s.logs) do add(log, s.t, cost) end
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
  record.tag, record.last, record.fields, record.logs = s.tag, s.t, h, s.logs
  record.life = life < FOR_EVER and life or unending
  record.kept = header(record)
end

-- What the answer needs of a log.
local function tell(log, cost, whole_log)
  if whole_log then
    return pack('>dd', log.total, log.length - log.live) .. entries(log, log.live)
  end
  if log.live == log.length then return pack('>d', log.total) end
  local length, total = log.length, log.total
  local function ends_at(index)
    if index + 1 >= length then return total end
    local _, before = entry(log, index + 1)
    return before
  end
  -- The entry with which so little is left that the running total counts from `need` on.
  local function out_at(need)
    return first(log, log.live + 1, function(_, before) return before >= need end) - 1
  end
  local places, used = {log.live, length - 1}, total - log.base
  if log.limit - used < cost then places[3] = out_at(total + cost - log.limit) end
  -- In debt what is left does not grow with the next entry.
  if used > log.limit then places[#places + 1] = out_at(total - log.limit + 1) end
  table.sort(places)
  local told = {pack('>d', log.base)}
  for _, index in ipairs(places) do
    local stamp = entry(log, index)
    told[#told + 1] = pack('>dd', stamp, ends_at(index))
  end
  return table.concat(told)
end

local reply, found = {}, {}
local arg, all = 2 + 2 * plans, true
for check = 1, #KEYS do
  local plan, cost, up_to, whole_logs
  plan, now, cost, up_to, whole_logs = unpack_('>ddddd', ARGV[arg + check - 1])
  local tag, figures = ARGV[2 * plan], ARGV[2 * plan + 1]
  local s = look(KEYS[check], tag, figures)
  local verdict = 2
  local told = #reply
  reply[told + 1], reply[told + 2] = verdict, s.kept or ''
  for i = 1, unpack_('>d', figures, #figures - 7) do reply[told + 2 + i] = '' end
  if not s.foreign then
    local room = s.room
    if up_to == 1 then
      local most = cost
      if room < cost then cost = room end
      if cost < 1 and most > 0 then cost = 1 end
      if cost < 0 then cost = 0 end
    end
    s.cost = cost
    for i, log in ipairs(s.logs) do reply[told + 2 + i] = tell(log, cost, whole_logs == 1) end
    if not s.record.broken then verdict = room >= cost and 1 or 0 end
  end
  reply[told + 1] = verdict
  found[check] = s
  all = all and verdict == 1
  if mode == EACH and verdict == 1 and cost > 0 then charge(s, cost) end
end
if mode == ALL and all then -- those of a group have one instant
  for _, s in ipairs(found) do
    if s.cost > 0 then charge(s, s.cost) end
  end
end
for _, record in pairs(records) do
  if record.tag then write(record) end
end
return reply
