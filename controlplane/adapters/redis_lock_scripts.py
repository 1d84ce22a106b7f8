"""The statements of SOFARegistry's ``distribute_lock.xml`` as Lua, run by Redis one at a time.

The row is one hash with the table's columns; times are milliseconds since 1970 by Redis's own clock. ``KEYS[1]`` is the
row. ``NOW(3)`` has milliseconds and ``NOW()`` whole seconds, as in MySQL, so that
``timestampdiff(SECOND, gmt_modified, NOW())`` gives the same result: a lock of 20 s is taken over after 21 s.
"""

_NOW = """
local time = redis.call('TIME')
local now_s = tonumber(time[1])
local now_ms = now_s * 1000 + math.floor(tonumber(time[2]) / 1000)
local function text(number) return string.format('%d', number) end
"""
"""Common beginning: the statement's time."""

_ROW = (
    _NOW
    + """
local row = redis.call('HMGET', KEYS[1], 'owner', 'term', 'term_duration', 'gmt_modified')
if not row[1] then return 0 end
local elapsed_s = math.floor((now_s * 1000 - tonumber(row[4])) / 1000)
"""
)
"""Common beginning of updates, which change nothing if there is no row."""

READ = (
    _NOW
    + """
local row = redis.call('HMGET', KEYS[1], 'data_center', 'lock_name', 'owner', 'duration', 'gmt_create',
    'gmt_modified', 'term', 'term_duration')
if not row[3] then return {text(now_ms)} end
table.insert(row, 1, text(now_ms))
return row
"""
)
"""No ARGV. Returns the time in ms, followed by the columns if there is a row."""

INSERT = (
    _NOW
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'data_center', ARGV[1], 'lock_name', ARGV[2], 'owner', ARGV[3], 'duration', ARGV[4],
    'gmt_create', text(now_ms), 'gmt_modified', text(now_ms), 'term', ARGV[5], 'term_duration', '0')
redis.call('SADD', KEYS[2], KEYS[1])
return 1
"""
)
"""ARGV: data center, lock name, owner, duration, first term. ``KEYS[2]`` is the set of the cluster's rows."""

TAKE_OVER = (
    _ROW
    + """
if row[1] ~= ARGV[2] or row[2] ~= ARGV[3] or row[3] ~= ARGV[4] then return 0 end
if elapsed_s * 1000 <= tonumber(ARGV[5]) then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'gmt_modified', text(now_ms),
    'term', text(tonumber(row[2]) + 1), 'term_duration', '0')
return 1
"""
)
"""ARGV: new owner; owner, term, term duration and duration as seen."""

RENEW = (
    _ROW
    + """
if row[1] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'gmt_modified', text(now_ms), 'term_duration', text(tonumber(row[3]) + 1))
return 1
"""
)
"""ARGV: owner. Since commit 197bb56db of February 2022."""

RENEW_GUARDED = (
    _ROW
    + """
if row[1] ~= ARGV[1] or row[2] ~= ARGV[2] or row[3] ~= ARGV[3] then return 0 end
if elapsed_s * 1000 >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], 'gmt_modified', text(now_ms), 'term_duration', text(tonumber(row[3]) + 1))
return 1
"""
)
"""ARGV: owner, term, term duration and duration as seen. Before that commit, and in SOFAStack's article of May 2022."""

FORCE_REFRESH = (
    _ROW
    + """
if row[1] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'gmt_modified', text(now_ms), 'duration', ARGV[2])
return 1
"""
)
"""ARGV: owner, duration. The row keeps its term and its number of renewals."""
