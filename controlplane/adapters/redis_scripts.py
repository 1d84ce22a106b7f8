"""The lease's compare-and-set operations as Lua, run by Redis one at a time.

The lease is one hash: ``owner`` (empty when given back), ``process``, ``term``, ``expires_at_ms`` by Redis's own clock
(of a lease that was given back: the time of that), and ``duration_ms``, for which it was granted or renewed. The key
has no Redis expiry on purpose. The scripts check expiry themselves, so that the term outlives every lease. It falls
only if Redis loses its data; the floor from the log then keeps terms growing (Kleppmann, "How to do distributed
locking", 2016: a lock needs a fencing token that only grows).

``process`` says which process of the owner's name has the lease. For any other process of that name the lease is held
by another; otherwise two controllers with one name would take it from each other forever. A record without that field,
as former releases leave it, is held by another as well.

Redis's clock may be set back. A lease that ends further ahead than its duration, or was given back at a time ahead, is
treated as if it had just been stored, and requests of contenders from a time ahead are dropped. So no controller waits
for longer than a lease, however far the clock was set back.

Every script takes the lease key as ``KEYS[1]`` and reads the time itself; clients' clocks are not used. Numbers are
passed as decimal strings.

``KEYS[2]`` is the hash of the contenders. For each controller that asks for the lease it holds the priority, the time
since when it has asked without a break, and the time of its last request, separated by spaces.
"""

_NOW = """
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local stored = redis.call('HMGET', KEYS[1], 'owner', 'term', 'expires_at_ms', 'duration_ms', 'process')
local owner = stored[1] or ''
local term = tonumber(stored[2] or '0')
local ends_in_ms = tonumber(stored[3] or '0') - now_ms
local longest_ms = owner == '' and 0 or tonumber(stored[4] or '') or ends_in_ms
local remaining_ms = math.min(ends_in_ms, longest_ms)
if remaining_ms <= 0 then owner = '' end
local function is_ours() return owner ~= '' and owner == ARGV[1] and stored[5] == ARGV[2] end
local function held()
    return {'held', owner, stored[5] or '', string.format('%d', term), string.format('%d', remaining_ms)}
end
"""
"""Common beginning: the holder of the lease (``owner`` is empty if there is none), its term and remaining time.

Scripts that change something get the caller's owner and process in ``ARGV[1]`` and ``ARGV[2]``.
"""

_OUTRANKING = """
local function outranking(name, priority, lasts_ms)
    local above, above_priority, above_since
    local entries = redis.call('HGETALL', KEYS[2])
    for i = 1, #entries, 2 do
        local rank, since, seen = string.match(entries[i + 1], '^(%d+) (%d+) (%d+)$')
        rank = tonumber(rank)
        local ago_ms = now_ms - tonumber(seen)
        if ago_ms < 0 or ago_ms > lasts_ms then
            redis.call('HDEL', KEYS[2], entries[i])
        elseif entries[i] ~= name and rank > priority
            and (not above or rank > above_priority or (rank == above_priority and entries[i] < above)) then
            above, above_priority, above_since = entries[i], rank, since
        end
    end
    return above, above and string.format('%d', above_priority),
        above and string.format('%d', now_ms - tonumber(above_since))
end
"""
"""The most preferred contender above a priority, its priority, and its time of asking, or nil; removes absent ones."""

ACQUIRE = (
    _NOW
    + _OUTRANKING
    + """
local duration_ms = tonumber(ARGV[4])
if remaining_ms < ends_in_ms then
    redis.call('HSET', KEYS[1], 'expires_at_ms', string.format('%d', now_ms + remaining_ms))
end
local above = outranking(ARGV[1], tonumber(ARGV[5]) or 0, duration_ms)
if ARGV[5] == '' then
    redis.call('HDEL', KEYS[2], ARGV[1])
else
    local entry = redis.call('HGET', KEYS[2], ARGV[1])
    local since = entry and string.match(entry, '^%d+ (%d+)') or string.format('%d', now_ms)
    redis.call('HSET', KEYS[2], ARGV[1], ARGV[5] .. ' ' .. since .. ' ' .. string.format('%d', now_ms))
end
if owner ~= '' and not is_ours() then return held() end
local wait_ms = math.floor(duration_ms / 2) + remaining_ms
if above and owner == '' and wait_ms > 0 then
    return {'left', above, string.format('%d', wait_ms)}
end
redis.call('HDEL', KEYS[2], ARGV[1])
local new_term = string.format('%d', math.max(term, tonumber(ARGV[3])) + 1)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'process', ARGV[2], 'term', new_term,
    'expires_at_ms', string.format('%d', now_ms + duration_ms), 'duration_ms', string.format('%d', duration_ms))
return {'granted', new_term}
"""
)
"""ARGV: owner, process, floor, duration_ms, priority (empty: remove the contender's record).

Returns ``granted, term``, ``held, owner, process, term, remaining_ms`` or ``left, left_to, wait_ms``.
"""

RENEW = (
    _NOW
    + _OUTRANKING
    + """
if owner == '' then return {'missing'} end
if not is_ours() or term ~= tonumber(ARGV[3]) then return held() end
local duration_ms = tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'expires_at_ms', string.format('%d', now_ms + duration_ms),
    'duration_ms', string.format('%d', duration_ms))
local above, priority, present_ms = outranking(ARGV[1], tonumber(ARGV[5]), duration_ms)
return {'renewed', string.format('%d', term), above or '', priority or '0', present_ms or '0'}
"""
)
"""ARGV: owner, process, term, duration_ms, priority.

Returns ``renewed, term, outranked_by, priority, present_ms`` (an empty name if not outranked), ``held, owner, process,
term, remaining_ms`` or ``missing``.

An expired lease is not renewed even if it is free: its owner had no right to lead since it expired.
"""

RELEASE = (
    _NOW
    + """
if not is_ours() or term ~= tonumber(ARGV[3]) then return {'not-ours'} end
redis.call('HSET', KEYS[1], 'owner', '', 'process', '', 'expires_at_ms', string.format('%d', now_ms))
return {'released'}
"""
)
"""ARGV: owner, process, term. Returns ``released`` or ``not-ours``; the term stays."""

READ = (
    _NOW
    + """
if owner == '' then return {'missing'} end
return held()
"""
)
"""No ARGV. Returns ``held, owner, process, term, remaining_ms`` or ``missing``."""

WRITE_MARK = """
local stored = redis.call('HMGET', KEYS[1], 'log_id', 'seq')
if stored[1] == ARGV[1] and tonumber(stored[2] or '0') >= tonumber(ARGV[3]) then return {'kept'} end
redis.call('HSET', KEYS[1], 'log_id', ARGV[1], 'term', ARGV[2], 'seq', ARGV[3])
return {'written'}
"""
"""KEYS: the mark's hash alone. ARGV: log id, term, seq. Returns ``written``, or ``kept`` if a later one is stored."""

WRITE_NOTE = """
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function note(owner_field, time_field, at_ms)
    local stored_ms = tonumber(redis.call('HMGET', KEYS[1], time_field)[1] or '0')
    if stored_ms > at_ms and stored_ms <= now_ms then return end
    redis.call('HSET', KEYS[1], owner_field, ARGV[1], time_field, string.format('%d', at_ms))
end
note('owner', 'at_ms', now_ms - tonumber(ARGV[2]))
if ARGV[3] ~= '' then note('worst_owner', 'worst_at_ms', now_ms - tonumber(ARGV[3])) end
return {'written'}
"""
"""KEYS: the hash alone. ARGV: owner, age in ms of the last acknowledgement, age in ms of the last answer about the
partition of which that is longest, or empty. Later times are kept, except one that is ahead: the server's clock was set
back since it was stored."""

READ_NOTE = """
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local stored = redis.call('HMGET', KEYS[1], 'owner', 'at_ms', 'worst_owner', 'worst_at_ms')
local function age(owner, at_ms)
    local age_ms = now_ms - tonumber(at_ms or '0')
    if not owner or owner == ARGV[1] or age_ms < 0 then return '' end
    return string.format('%d', age_ms)
end
return {age(stored[1], stored[2]), age(stored[3], stored[4])}
"""
"""KEYS: the hash alone. ARGV: owner. Returns the two ages in ms, each empty if it is missing or the owner's own.

Former releases store ``owner`` and ``at_ms`` alone.
"""

CONTENDERS = (
    _NOW
    + """
local entries = redis.call('HGETALL', KEYS[2])
table.insert(entries, 1, string.format('%d', now_ms))
return entries
"""
)
"""No ARGV. Returns the time in ms, followed by each contender and its entry."""
