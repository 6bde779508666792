-- Writes fields of a hash if its sequence is still what the caller read, and moves the sequence on.
--
-- KEYS  hash
-- ARGV  the sequence that was read, then fields and values
-- Returns 1, or 0 when somebody else was faster; an error if the hash is a lock
local hash, seen = KEYS[1], ARGV[1]
local sequence = redis.call('HGET', hash, 'lease_seq')
if not sequence and is_lock(hash) then
    return refused(hash)
end
if (sequence or '0') ~= seen then
    return 0
end
-- First of all: where the sequence cannot be moved on, nothing may be written.
redis.call('HINCRBY', hash, 'lease_seq', 1)
for index = 2, #ARGV, 2 do
    redis.call('HSET', hash, ARGV[index], ARGV[index + 1])
end
return 1
