"""The lease's compare-and-set operations as Lua, run by Redis one at a time.

The lease is one hash: ``owner`` (empty when given back), ``term``, ``expires_at_ms`` by Redis's own clock. The key
has no Redis expiry on purpose: a script judges expiry, so that the term survives the end of every lease and falls
only if Redis loses its data, where the floor from the log takes over (Kleppmann, "How to do distributed locking",
2016: a lock needs a fencing token that only grows).

Every script takes the lease key as ``KEYS[1]`` and reads the time itself; no client's clock counts. Numbers travel as
decimal strings.
"""

_NOW = """
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local stored = redis.call('HMGET', KEYS[1], 'owner', 'term', 'expires_at_ms')
local owner = stored[1] or ''
local term = tonumber(stored[2] or '0')
local remaining_ms = tonumber(stored[3] or '0') - now_ms
if remaining_ms <= 0 then owner = '' end
"""
"""Common beginning: who holds the lease now (``owner`` is empty when nobody does), its term and remaining time."""

ACQUIRE = (
    _NOW
    + """
if owner ~= '' and owner ~= ARGV[1] then
    return {'held', owner, string.format('%d', term), string.format('%d', remaining_ms)}
end
local new_term = string.format('%d', math.max(term, tonumber(ARGV[2])) + 1)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'term', new_term,
    'expires_at_ms', string.format('%d', now_ms + tonumber(ARGV[3])))
return {'granted', new_term}
"""
)
"""ARGV: owner, floor, duration_ms. Returns ``granted, term`` or ``held, owner, term, remaining_ms``."""

RENEW = (
    _NOW
    + """
if owner == '' then return {'missing'} end
if owner ~= ARGV[1] or term ~= tonumber(ARGV[2]) then
    return {'held', owner, string.format('%d', term), string.format('%d', remaining_ms)}
end
redis.call('HSET', KEYS[1], 'expires_at_ms', string.format('%d', now_ms + tonumber(ARGV[3])))
return {'renewed', string.format('%d', term)}
"""
)
"""ARGV: owner, term, duration_ms. Returns ``renewed, term``, ``held, owner, term, remaining_ms`` or ``missing``.

A lease that ran out is not renewed even if nobody took it: its owner had no right to lead meanwhile.
"""

RELEASE = (
    _NOW
    + """
if owner == '' or owner ~= ARGV[1] or term ~= tonumber(ARGV[2]) then return {'not-ours'} end
redis.call('HSET', KEYS[1], 'owner', '', 'expires_at_ms', '0')
return {'released'}
"""
)
"""ARGV: owner, term. Returns ``released`` or ``not-ours``; the term stays."""

READ = (
    _NOW
    + """
if owner == '' then return {'missing'} end
return {'held', owner, string.format('%d', term), string.format('%d', remaining_ms)}
"""
)
"""No ARGV. Returns ``held, owner, term, remaining_ms`` or ``missing``."""
