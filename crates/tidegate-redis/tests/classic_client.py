"""Runs the token-bucket script that services run, by redis-py: one check for each line of standard input."""
import sys

import redis

SCRIPT = """
local capacity, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, cost = tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'last')
local tokens = tonumber(kept[1]) or capacity
local last = tonumber(kept[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - last) * rate)
local allowed = tokens >= cost
if allowed then tokens = tokens - cost end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'last', tostring(math.max(now, last)))
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) + 1)
return {allowed and 1 or 0, tostring(tokens)}
"""

check = redis.Redis(port=int(sys.argv[1])).register_script(SCRIPT)
for line in sys.stdin:
    key, *arguments = line.split()
    allowed, tokens = check(keys=[key], args=arguments)
    print(allowed, float(tokens), flush=True)
