-- The token bucket that many services run already: a hash with the fields tokens and last, in floating point.
--
-- KEYS  1: the hash
-- ARGV  capacity, tokens a second, now in seconds, what is done (check, upto, credit, charge), how much, and how far
--       below zero a charge may go
-- Reply whether it was admitted, the tokens there were by now and those there are, and the instant it was decided at
--
-- Written by the rules of the scripts that it shares its keys with: time does not go back, a key lives for as long as
-- it takes to fill and a second more. What is refused, or asks for nothing, writes nothing.
local capacity, rate, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local what, amount, debt = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'last')
local tokens, last = tonumber(kept[1]), tonumber(kept[2])
if (kept[1] or kept[2]) and not (tokens and last and tokens == tokens and last == last) then
  return redis.error_reply('DAMAGED the fields tokens and last are not numbers')
end
if not tokens then tokens, last = capacity, now end
if now < last then now = last end
tokens = math.min(capacity, tokens + (now - last) * rate)
local admitted, after = 1, tokens
if what == 'credit' then
  after = math.min(capacity, tokens + amount)
elseif what == 'charge' then
  after = math.max(math.min(tokens, -debt), tokens - amount)
else
  if what == 'upto' then
    local most = amount
    amount = math.min(math.max(math.floor(tokens), 0), most)
    if amount < 1 and most > 0 then amount = 1 end
  end
  if tokens >= amount then after = tokens - amount else admitted = 0 end
end
if admitted == 1 and amount > 0 then
  redis.call('HSET', KEYS[1], 'tokens', string.format('%.17g', after), 'last', string.format('%.17g', now))
  redis.call('EXPIRE', KEYS[1], string.format('%.0f', math.min(math.ceil(capacity / rate) + 1, 1e12)))
end
return {admitted, string.format('%.17g', tokens), string.format('%.17g', after), string.format('%.17g', now)}
